package fieldmerge

import (
	"reflect"
	"slices"
	"testing"
)

func TestDriftNamesFieldsAndTheirOwners(t *testing.T) {
	t.Parallel()
	before := thingOf(t, `{"a":1,"m":{"x":1},"l":[1],"status":{"p":1},"metadata":{"resourceVersion":"1","generation":1}}`)
	live := owned(t, `{"a":2,"m":{"x":1,"y":{"z":1}},"l":[1,2],"status":{"p":2}}`,
		by("alice", updated, 1, `{"f:a":{},"f:l":{}}`), by("bob", applied, 1, `{"f:m":{"f:y":{".":{},"f:z":{}}}}`))
	live.SetResourceVersion("2")
	live.SetGeneration(2)
	var got []string
	for _, f := range drift(before, live) {
		got = append(got, f.String())
	}
	if want := []string{".a (now of alice)", ".l (now of alice)", ".m.y.z (now of bob)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDriftOfARemovedFieldNamesNobody(t *testing.T) {
	t.Parallel()
	got := drift(thingOf(t, `{"a":1,"m":{}}`), owned(t, `{}`, by("alice", updated, 1, `{"f:b":{}}`)))
	if len(got) != 2 || got[0].String() != ".a" || got[1].String() != ".m" {
		t.Errorf("got %v", got)
	}
}

// What is owned as a whole has its owner named for a part of it.
func TestDriftInsideAnAtomicObjectNamesItsOwner(t *testing.T) {
	t.Parallel()
	got := drift(thingOf(t, `{"selector":{"a":"1"}}`), owned(t, `{"selector":{"a":"2"}}`, by("alice", applied, 1, `{"f:selector":{}}`)))
	if len(got) != 1 || got[0].String() != ".selector.a (now of alice)" {
		t.Errorf("got %v", got)
	}
}

func TestThereIsDriftIffTheFieldsDiffer(t *testing.T) {
	t.Parallel()
	r := random(9)
	for range 1000 {
		x, y := anyObject(r), anyObject(r)
		if found := drift(thing(x), thing(y)); (len(found) == 0) != reflect.DeepEqual(x, y) {
			t.Fatalf("%v and %v: drift %v", x, y, found)
		}
	}
}

// A change may alter nothing but the order of a list, and so may another client.
func TestDriftAndStandSeeTheOrderOfAList(t *testing.T) {
	t.Parallel()
	one := thingOf(t, `{"spec":{"tags":["x","y"]}}`)
	other := thingOf(t, `{"spec":{"tags":["y","x","z"]}}`)
	for want, live := range map[Standing]string{
		AtBefore: `{"spec":{"tags":["x","w","y"]}}`, AtAfter: `{"spec":{"tags":["y","x","z"]}}`, Mixed: `{"spec":{"tags":["x","y","z"]}}`,
	} {
		i := Images{Type: thingType, Before: one, After: other, Live: thingOf(t, live), Ours: nobody}
		if got := i.Stand(); got != want {
			t.Errorf("%s stands at %d, want %d", live, got, want)
		}
	}
	i := Images{Type: thingType, Before: one, Live: thingOf(t, `{"spec":{"tags":["y","x"]}}`), Ours: nobody}
	if found := i.Drift(); len(found) != 1 || found[0].Path != ".spec.tags" {
		t.Errorf("drift %v", found)
	}
}
