package fieldmerge

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func nobody(string) bool { return false }

// thing makes an object of some content.
func thing(content map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: clone(content)}
	out.SetAPIVersion("v1")
	out.SetKind("Thing")
	out.SetName("a")
	return out
}

func thingOf(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	var content map[string]any
	if err := utiljson.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return thing(content)
}

func conflictsOf(r Restoration) []string {
	var out []string
	for _, c := range r.Conflicts {
		out = append(out, c.Path)
	}
	return out
}

func TestRestore(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, before, after, live, want, conflicts string }{
		{"gives a changed field its old value", `{"a":1}`, `{"a":2}`, `{"a":2}`, `{"a":1}`, ""},
		{"leaves a field that is back already", `{"a":1}`, `{"a":2}`, `{"a":1}`, `{"a":1}`, ""},
		{"leaves what only others changed", `{"a":1,"b":1}`, `{"a":2,"b":1}`, `{"a":2,"b":3,"c":4}`, `{"a":1,"b":3,"c":4}`, ""},
		{"keeps what others wrote over ours", `{"a":1,"b":1}`, `{"a":2,"b":2}`, `{"a":3,"b":2}`, `{"a":3,"b":1}`, ".a"},
		{"keeps it deleted when others deleted what we changed", `{"a":1}`, `{"a":2}`, `{}`, `{}`, ".a"},
		{"has nothing to do when others deleted what we added", `{}`, `{"a":2}`, `{}`, `{}`, ""},
		{"puts back what we removed", `{"a":1}`, `{}`, `{}`, `{"a":1}`, ""},
		{"keeps what others put where we removed", `{"a":1}`, `{}`, `{"a":5}`, `{"a":5}`, ".a"},
		{"removes an object that we added", `{}`, `{"m":{"a":1}}`, `{"m":{"a":1}}`, `{}`, ""},
		{"keeps what others put into an object that we added", `{}`, `{"m":{"a":1}}`, `{"m":{"a":1,"b":2}}`, `{"m":{"b":2}}`, ""},
		{"puts back an object into which others wrote since we removed it", `{"m":{"a":1}}`, `{}`, `{"m":{"b":2}}`, `{"m":{"a":1,"b":2}}`, ""},
		{"has nothing to do when others removed the object that we added to", `{"m":{"x":1}}`, `{"m":{"x":1,"y":2}}`, `{}`, `{}`, ""},
		{"names the field when others removed the object that we changed", `{"m":{"x":1}}`, `{"m":{"x":2}}`, `{}`, `{}`, ".m.x"},
		{"puts back an empty object", `{"m":{}}`, `{"m":{"a":1}}`, `{"m":{"a":1}}`, `{"m":{}}`, ""},
		{"puts back an empty object that we removed", `{"m":{}}`, `{}`, `{}`, `{"m":{}}`, ""},
		{"puts back an explicit null", `{"a":null}`, `{"a":1}`, `{"a":1}`, `{"a":null}`, ""},
		{"tells null from absent", `{"a":null}`, `{}`, `{}`, `{"a":null}`, ""},
		{"compares lists as a whole", `{"l":[1]}`, `{"l":[1,2]}`, `{"l":[1,2,3]}`, `{"l":[1,2,3]}`, ".l"},
		{"is exact with large integers", `{"a":9007199254740993}`, `{"a":9007199254740992}`, `{"a":9007199254740992}`, `{"a":9007199254740993}`, ""},
		{"takes another type for another value", `{"a":{"b":1}}`, `{"a":"x"}`, `{"a":"x"}`, `{"a":{"b":1}}`, ""},
		{"keeps another type of others", `{"a":{"b":1}}`, `{"a":{"b":2}}`, `{"a":"x"}`, `{"a":"x"}`, ".a"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before, after, live := thingOf(t, c.before), thingOf(t, c.after), thingOf(t, c.live)
			untouched := []*unstructured.Unstructured{before.DeepCopy(), after.DeepCopy(), live.DeepCopy()}
			got := restore(before, after, live, nobody)
			if want := thingOf(t, c.want); !reflect.DeepEqual(got.Desired, want) {
				t.Errorf("got %v, want %v", got.Desired.Object, want.Object)
			}
			var conflicts []string
			if c.conflicts != "" {
				conflicts = []string{c.conflicts}
			}
			if !slices.Equal(conflictsOf(got), conflicts) {
				t.Errorf("conflicts %v, want %v", conflictsOf(got), conflicts)
			}
			if !reflect.DeepEqual([]*unstructured.Unstructured{before, after, live}, untouched) {
				t.Error("an argument was changed")
			}
		})
	}
}

func TestRestoreLeavesServerMetadataAndStatusOfLive(t *testing.T) {
	t.Parallel()
	before := thingOf(t, `{"a":1,"status":{"phase":"old"},"metadata":{"uid":"u","resourceVersion":"1","generation":1,"labels":{"x":"1"}}}`)
	after := thingOf(t, `{"a":2,"metadata":{"labels":{"x":"2"}}}`)
	live := thingOf(t, `{"a":2,"status":{"phase":"new"},"metadata":{"uid":"u","resourceVersion":"7","generation":2,"labels":{"x":"2"},"finalizers":["f"]}}`)
	want := thingOf(t, `{"a":1,"status":{"phase":"new"},"metadata":{"uid":"u","resourceVersion":"7","generation":2,"labels":{"x":"1"},"finalizers":["f"]}}`)
	if got := restore(before, after, live, nobody); !reflect.DeepEqual(got.Desired, want) || len(got.Conflicts) > 0 {
		t.Errorf("got %v %v, want %v", got.Desired.Object, got.Conflicts, want.Object)
	}
}

// An annotation that nobody owns may be one that admission stamps on every write, and then the change has
// it too. Another client may have written one while no fields were tracked.
func TestAnAnnotationThatTheChangeNeverHadIsKept(t *testing.T) {
	t.Parallel()
	before := thingOf(t, `{"a":1,"metadata":{"annotations":{"stamp":"0"}}}`)
	after := thingOf(t, `{"a":2,"metadata":{"annotations":{"stamp":"1"}}}`)
	live := thingOf(t, `{"a":2,"metadata":{"annotations":{"stamp":"2","note":"theirs"},"managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}}}]}}`)
	got := restore(before, after, live, func(manager string) bool { return manager == "kubectl" })
	annotations := got.Desired.GetAnnotations()
	if len(got.Conflicts) > 0 || got.Desired.Object["a"] != int64(1) || annotations["stamp"] != "0" || annotations["note"] != "theirs" {
		t.Errorf("got %v %v", got.Desired.Object, got.Conflicts)
	}
}

// A replacement drops the revision of a Deployment, and the controller numbers it again.
func TestWhatControllersWriteIsNeverAConflict(t *testing.T) {
	t.Parallel()
	revision := func(n string) *unstructured.Unstructured {
		return thingOf(t, `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"`+n+`","note":"x"}}}`)
	}
	after := thingOf(t, `{"a":2,"metadata":{"annotations":{"note":"x"}}}`)
	live := revision("2")
	live.Object["a"] = int64(2)
	got := restore(revision("1"), after, live, nobody)
	if len(got.Conflicts) > 0 || !reflect.DeepEqual(got.Desired, revision("2")) {
		t.Errorf("got %v %v", got.Desired.Object, got.Conflicts)
	}
	if stand(revision("1"), after, live) != AtAfter {
		t.Errorf("it stands at %v", stand(revision("1"), after, live))
	}
	if found := drift(revision("1"), revision("2")); len(found) > 0 {
		t.Errorf("drift %v", found)
	}
	if found := drift(thingOf(t, `{}`), thingOf(t, `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"1"}}}`)); len(found) > 0 {
		t.Errorf("drift %v", found)
	}
}

func TestStand(t *testing.T) {
	t.Parallel()
	cases := []struct {
		before, after, live string
		want                Standing
	}{
		{`{"a":1}`, `{"a":2}`, `{"a":1}`, AtBefore},
		{`{"a":1}`, `{"a":2}`, `{"a":2,"b":7}`, AtAfter},
		{`{"a":1}`, `{"a":2}`, `{"a":3}`, Mixed},
		{`{"a":1,"b":1}`, `{"a":2,"b":2}`, `{"a":1,"b":2}`, Mixed},
		{`{"a":1}`, `{"a":1}`, `{"a":9}`, AtAfter},
		{`{"a":1}`, `{}`, `{}`, AtAfter},
		{`{"a":1}`, `{}`, `{"b":1}`, AtAfter},
		{`{}`, `{"m":{"a":1}}`, `{"m":{"a":1,"b":2}}`, AtAfter},
		{`{}`, `{"m":{"a":1}}`, `{"m":{"b":2}}`, AtBefore},
		{`{"m":{"a":1}}`, `{}`, `{"m":{"b":2}}`, AtAfter},
		{`{"m":{"a":1}}`, `{"m":{"a":2}}`, `{}`, Mixed},
		{`{"a":null}`, `{}`, `{"a":null}`, AtBefore},
		{`{}`, `{"m":{}}`, `{}`, AtBefore},
		{`{}`, `{"m":{}}`, `{"m":{}}`, AtAfter},
		{`{}`, `{"m":{}}`, `{"m":{"b":1}}`, Mixed},
	}
	for _, c := range cases {
		if got := stand(thingOf(t, c.before), thingOf(t, c.after), thingOf(t, c.live)); got != c.want {
			t.Errorf("stand(%s, %s, %s) = %d, want %d", c.before, c.after, c.live, got, c.want)
		}
	}
}

func TestReplaceable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, after, live string
		want                bool
	}{
		{`{"m":{"a":1}}`, `{}`, `{}`, false},
		{`{"m":{"a":1}}`, `{}`, `{"m":{"b":2}}`, true},
		{`{"m":{"a":1}}`, `{}`, `{"n":{"b":2}}`, true},
		{`{"m":{"a":1,"b":2}}`, `{"m":{"b":2}}`, `{"m":{"b":2}}`, false},
		{`{"m":{"a":1,"b":2}}`, `{"m":{"b":2}}`, `{"m":{"b":2,"c":3}}`, true},
		{`{"m":{"a":1}}`, `{"m":{"b":2}}`, `{"m":{"b":2,"c":3}}`, false},
	} {
		images := Images{Before: thingOf(t, c.before), After: thingOf(t, c.after), Live: thingOf(t, c.live), Ours: nobody}
		if got := images.Replaceable(); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// Field by field, there are four cases.
func TestEveryFieldIsRestoredOrKept(t *testing.T) {
	t.Parallel()
	r := random(1)
	for range 1000 {
		before, after, live := anyObject(r), anyObject(r), anyObject(r)
		got := restore(thing(before), thing(after), thing(live), nobody)
		b, a, l := leaves(before), leaves(after), leaves(live)
		want, conflicts := map[string]any{}, []string(nil)
		for _, field := range []map[string]any{b, a, l} {
			for path := range field {
				bv, inB := b[path]
				av, inA := a[path]
				lv, inL := l[path]
				v, there := lv, inL
				switch {
				case inB == inA && reflect.DeepEqual(bv, av), inL == inB && reflect.DeepEqual(lv, bv):
				case inL == inA && reflect.DeepEqual(lv, av):
					v, there = bv, inB
				default:
					conflicts = append(conflicts, path)
				}
				if there {
					want[path] = v
				}
			}
		}
		slices.Sort(conflicts)
		conflicts = slices.Compact(conflicts)
		if desired := leaves(content(got.Desired)); !reflect.DeepEqual(desired, want) {
			t.Fatalf("before %v\nafter %v\nlive %v\ngot %v\nwant %v", before, after, live, desired, want)
		}
		found := conflictsOf(got)
		slices.Sort(found)
		if !slices.Equal(found, conflicts) {
			t.Fatalf("before %v\nafter %v\nlive %v\nconflicts %v, want %v", before, after, live, found, conflicts)
		}
	}
}

// What follows are the comparisons of objects without a schema.

func restore(before, after, live *unstructured.Unstructured, ours func(string) bool) Restoration {
	return Images{Before: before, After: after, Live: live, Ours: ours}.Restore()
}

func restoreOwners(before, after, live *unstructured.Unstructured, ours func(string) bool) ([]metav1.ManagedFieldsEntry, bool, error) {
	return Images{Before: before, After: after, Live: live, Ours: ours}.RestoreOwners()
}

func stand(before, after, live *unstructured.Unstructured) Standing {
	return Images{Before: before, After: after, Live: live}.Stand()
}

func drift(before, live *unstructured.Unstructured) []FieldConflict {
	return Images{Before: before, Live: live}.Drift()
}

// String is a conflict as tests show it.
func (c FieldConflict) String() string {
	if len(c.Managers) == 0 {
		return c.Path
	}
	return fmt.Sprintf("%s (now of %s)", c.Path, strings.Join(c.Managers, ", "))
}
