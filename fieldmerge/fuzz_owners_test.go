package fieldmerge

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// FuzzOwnersGetTheirOwn: whatever managedFields say, a hand-over and a restoration
// give no manager, but the default one, a field that was never theirs, a hand-over
// gives back what had an owner before, and leaves no field of ours without an owner.
func FuzzOwnersGetTheirOwn(f *testing.F) {
	f.Add([]byte(realBefore), []byte(realLive), []byte(realObject), []byte(`{"spec":{"replicas":2}}`), false)
	f.Add([]byte(realLive), []byte(realBefore), []byte(`{"spec":{"replicas":2}}`), []byte(realObject), true)
	f.Add([]byte(`[{"manager":"default","operation":"Apply","apiVersion":"v1","fieldsV1":{"f:a":{}}}]`),
		[]byte(`[{"manager":"janus","operation":"Apply","apiVersion":"v1","fieldsV1":{"f:a":{},"f:b":{".":{},"f:c":{}}}}]`),
		[]byte(`{"a":1,"b":{"c":2}}`), []byte(`{"a":2}`), false)
	f.Add([]byte(`[]`), []byte(`[{"manager":"before-first-apply","operation":"Update","apiVersion":"v1","fieldsV1":{"f:a":{}}},
		{"manager":"janus","operation":"Apply","apiVersion":"v1","fieldsV1":{"f:a":{}}}]`), []byte(`{"a":1}`), []byte(`{"a":2}`), false)
	f.Add([]byte(`[{"manager":"u","operation":"Update","apiVersion":"v2","fieldsV1":{"f:l":{"k:{\"n\":1}":{},"v:null":{},"i:-1":{}}}},{"manager":"u","operation":"Update","apiVersion":"v2"}]`),
		[]byte(`[{"manager":"janus","operation":"Update","apiVersion":"v2","subresource":"status","fieldsV1":{"f:l":{"k:{\"n\":1}":{}},"f:status":{}}}]`),
		[]byte(`{"apiVersion":"v2","l":[{"n":1},null],"status":{}}`), []byte(`{"l":[]}`), false)
	f.Fuzz(func(t *testing.T, had, has, object, other []byte, absent bool) {
		before, after, live := fuzzed(object), fuzzed(other), fuzzed(object)
		var was, is []metav1.ManagedFieldsEntry
		if before == nil || after == nil || json.Unmarshal(had, &was) != nil || json.Unmarshal(has, &is) != nil {
			return
		}
		for n := range was {
			if isJanus(was[n].Manager) {
				was[n].Manager = "other"
			}
		}
		before.SetManagedFields(was)
		live.SetManagedFields(is)
		previous, err := entriesOf(before)
		current, also := entriesOf(live)
		if err != nil || also != nil {
			return
		}
		images := Images{Before: before, After: after, Live: live, Ours: isJanus}
		if list, _, err := images.RestoreOwners(); err != nil {
			t.Fatal(err)
		} else {
			checkOwn(t, "RestoreOwners", list, previous, current, "")
		}
		if absent {
			images.Before, previous = nil, nil
		}
		list, changed, err := images.HandOver(Hands{Own: "marks", Passing: isJanus, Left: "default"})
		if err != nil {
			t.Fatal(err)
		}
		if changed {
			checkOwn(t, "HandOver", list, previous, current, "default")
			checkHandedOver(t, list, previous, current, live)
		}
	})
}

func entriesIn(t *testing.T, list []metav1.ManagedFieldsEntry) entries {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetManagedFields(list)
	out, err := entriesOf(obj)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// of is everything that an owner has, in whatever versions.
func (l entries) of(o owner) *fieldpath.Set {
	out := fieldpath.NewSet()
	for _, e := range l {
		if e.owner == o {
			out = out.Union(e.set)
		}
	}
	return out
}

func checkOwn(t *testing.T, what string, list []metav1.ManagedFieldsEntry, previous, current entries, leftTo string) {
	t.Helper()
	for _, e := range entriesIn(t, list) {
		if e.Manager == leftTo && e.Operation == metav1.ManagedFieldsOperationApply {
			continue
		}
		if more := e.set.Difference(previous.of(e.owner).Union(current.of(e.owner))); !more.Empty() {
			t.Fatalf("%s gives %s of %s, which was never theirs", what, more, e.Manager)
		}
	}
}

func checkHandedOver(t *testing.T, list []metav1.ManagedFieldsEntry, previous, current entries, live *unstructured.Unstructured) {
	t.Helper()
	now, ours := entriesIn(t, list), fieldpath.NewSet()
	for _, mine := range current {
		if !isJanus(mine.Manager) {
			continue
		}
		if mine.Operation == metav1.ManagedFieldsOperationApply {
			ours = ours.Union(mine.set)
		} else {
			ours = ours.Union(only(mine.set.Intersection(ofVersion(previous, mine.APIVersion)), func(p fieldpath.Path) bool { return exists(live.Object, p) }))
		}
		for _, had := range previous {
			if had.APIVersion != mine.APIVersion {
				continue
			}
			had.set.Intersection(mine.set).Iterate(func(p fieldpath.Path) {
				if exists(live.Object, p) && !now.of(had.owner).Has(p) {
					t.Fatalf("%s does not get %s back", had.Manager, p)
				}
			})
		}
	}
	if lost := ours.Difference(now.union()); !lost.Empty() {
		t.Fatalf("nobody owns %s now", lost)
	}
}

// ofVersion is what anyone owns by a version of the kind.
func ofVersion(list entries, version string) *fieldpath.Set {
	out := fieldpath.NewSet()
	for _, e := range list {
		if e.APIVersion == version {
			out = out.Union(e.set)
		}
	}
	return out
}

// FuzzReown: whatever the owner references and the managedFields are, references
// move, or go, with those who own them.
func FuzzReown(f *testing.F) {
	f.Add([]byte(`{"metadata":{"ownerReferences":[{"uid":"u-1","kind":"A"},{"uid":"u-2"}],"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1",
		"fieldsV1":{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"u-1\"}":{},"k:{\"uid\":\"u-2\"}":{"f:kind":{}}}}}}]}}`), "u-1", "u-9")
	f.Add([]byte(`{"metadata":{"ownerReferences":[null,7,{"uid":7},{}]}}`), "", "x")
	f.Add([]byte(`{"metadata":{"ownerReferences":"x","managedFields":[{"fieldsV1":{"f:metadata":{"f:ownerReferences":{"v:1":{},"i:0":{},"k:{\"uid\":1}":{}}}}}]}}`), "1", "")
	f.Add([]byte(`{"metadata":null}`), "a", "b")
	f.Add([]byte(`{"metadata":{"managedFields":[{"fieldsV1":{"f:metadata":{"f:ownerReferences":{"k:{}":{}}}}}]}}`), "a", "b")
	f.Fuzz(func(t *testing.T, object []byte, old, fresh string) {
		content := objectOf(object)
		if content == nil {
			return
		}
		if meta, there := content["metadata"]; there && meta == nil {
			delete(content, "metadata")
		}
		obj := &unstructured.Unstructured{Object: content}
		was := line(obj)
		moved, err := Reown(obj, func(uid types.UID) types.UID {
			if string(uid) == old {
				return types.UID(fresh)
			}
			return uid
		})
		if line(obj) != was {
			t.Fatal("the argument has changed")
		}
		if err != nil {
			return
		}
		for _, r := range moved.GetOwnerReferences() {
			if string(r.UID) == old && old != fresh {
				t.Fatalf("a reference stays: %s", line(moved))
			}
		}
		if _, err := entriesOf(moved); err != nil {
			t.Fatalf("owners that cannot be read: %v", err)
		}
	})
}
