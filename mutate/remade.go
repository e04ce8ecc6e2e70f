package mutate

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/snapshot"
)

// remade reports whether an object is the re-created one, by what can be seen of it. Where
// no creation can have been sent, one that has nothing of ours is another client's, however
// much it looks like the deleted one; so is a hollow one, which is marked until it is on
// record.
func (c Change) remade(live, wanted *unstructured.Unstructured) bool {
	return c.Names.owns(live) || inherits(live, wanted) || !c.Fences.Fresh && !hollow(wanted) && restored(live, wanted)
}

// hollow reports whether an object has no content, as an empty ConfigMap. The API server
// tracks nothing of the creation of such an object.
func hollow(obj *unstructured.Unstructured) bool {
	content := snapshot.ForCreate(obj).Object
	for _, name := range []string{"apiVersion", "kind"} {
		delete(content, name)
	}
	metadata, _ := content["metadata"].(map[string]any)
	for _, name := range []string{"name", "namespace"} {
		delete(metadata, name)
	}
	return empty(content)
}

// empty reports whether there is no value in v.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, value := range v {
			if !empty(value) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	default:
		return false
	}
}

// restored reports whether an object is the re-created one, complete already. What
// controllers have made of it since does not count, nor which of its owners are
// there.
func restored(live, before *unstructured.Unstructured) bool {
	none := func(types.UID) types.UID { return "" }
	is, err := fieldmerge.Reown(live, none)
	if err != nil {
		return false
	}
	was, err := fieldmerge.Reown(before, none)
	if err != nil {
		return false
	}
	return sameContent(is, was) && equality.Semantic.DeepEqual(writtenBy(is), writtenBy(was))
}

func sameContent(live, before *unstructured.Unstructured) bool {
	return len(fieldmerge.Images{Before: snapshot.ForCreate(before), Live: snapshot.ForCreate(live)}.Drift()) == 0
}

// inherits reports whether an object has an entry of the deleted one's managedFields
// that is older than itself. No creation makes such an entry. A rollback does, when it
// completes what it has re-created, and what others write afterwards does not hide it.
func inherits(live, before *unstructured.Unstructured) bool {
	born := live.GetCreationTimestamp()
	return slices.ContainsFunc(writtenBy(live), func(e metav1.ManagedFieldsEntry) bool {
		return e.Time.Before(&born) && inherited(e, before)
	})
}

// inherited reports whether an entry is one of the deleted object's.
func inherited(e metav1.ManagedFieldsEntry, before *unstructured.Unstructured) bool {
	return slices.ContainsFunc(before.GetManagedFields(), func(old metav1.ManagedFieldsEntry) bool {
		return e.Manager == old.Manager && e.Operation == old.Operation && e.Time.Equal(old.Time)
	})
}

// writtenBy returns the entries of who has written an object, controllers aside.
func writtenBy(obj *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, e := range exceptStatus(obj.GetManagedFields()) {
		if !fieldmerge.ControlPlane(e.Manager) {
			out = append(out, e)
		}
	}
	return out
}
