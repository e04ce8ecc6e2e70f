package fieldmerge

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
)

// differences writes them down; without a type, every list is one value.
func differences(before, after *unstructured.Unstructured, types ...typed.ParseableType) []string {
	images := Images{Before: before, After: after}
	for _, t := range types {
		images.Type = t
	}
	var out []string
	for _, d := range images.Differences() {
		out = append(out, fmt.Sprintf("%s: %v -> %v", d.Path, d.Before, d.After))
	}
	return out
}

func TestDifferencesAreListedByField(t *testing.T) {
	t.Parallel()
	before := thingOf(t, `{"a":1,"m":{"x":1,"gone":2},"l":[1],"none":null,"status":{"p":1},"metadata":{"resourceVersion":"1","uid":"u","generation":1}}`)
	after := thingOf(t, `{"a":2,"m":{"x":1,"y":{"z":1},"e":{}},"l":[1,2],"was":null,"status":{"p":1},"metadata":{"resourceVersion":"2","uid":"u","generation":2}}`)
	want := []string{
		".a: 1 -> 2", ".l: [1] -> [1 2]", ".m.e: <nil> -> map[]", ".m.gone: 2 -> <nil>", ".m.y.z: <nil> -> 1", ".none: {} -> <nil>", ".was: <nil> -> {}",
	}
	if got := differences(before, after); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDifferencesSeeTheItemsOfASetAndTheirOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, after string
		want          []string
	}{
		{`{"spec":{"tags":["x","y"]}}`, `{"spec":{"tags":["x","y","z"]}}`, []string{`.spec.tags[="z"]: <nil> -> z`}},
		{`{"spec":{"tags":["x","y"]}}`, `{"spec":{"tags":["y"]}}`, []string{`.spec.tags[="x"]: x -> <nil>`}},
		{`{"spec":{"tags":["x","y"]}}`, `{"spec":{"tags":["y","x"]}}`, []string{`.spec.tags: [x y] -> [y x]`}},
	} {
		if got := differences(thingOf(t, c.before), thingOf(t, c.after), thingType); !slices.Equal(got, c.want) {
			t.Errorf("%s to %s: got %q, want %q", c.before, c.after, got, c.want)
		}
	}
}

func TestThereAreDifferencesIffTheFieldsDiffer(t *testing.T) {
	t.Parallel()
	r := random(11)
	for range 1000 {
		x, y := anyObject(r), anyObject(r)
		if found := differences(thing(x), thing(y)); (len(found) == 0) != reflect.DeepEqual(x, y) {
			t.Fatalf("%v and %v: %v", x, y, found)
		}
	}
}

// All of an object that is new is new, and of one that goes all goes.
func TestAnObjectThatIsNewIsListedByItsFields(t *testing.T) {
	t.Parallel()
	object := thingOf(t, `{"m":{"x":1}}`)
	for _, d := range (Images{After: object}).Differences() {
		if d.Before != nil || d.After == nil {
			t.Errorf("%+v", d)
		}
	}
	if got := differences(nil, object); !slices.Contains(got, ".m.x: <nil> -> 1") {
		t.Errorf("got %q", got)
	}
	if got := differences(object, nil); !slices.Contains(got, ".m.x: 1 -> <nil>") {
		t.Errorf("got %q", got)
	}
}
