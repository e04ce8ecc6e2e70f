package mutate

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/snapshot"
)

// remade reports whether an object is the re-created one, by what can be seen of it. Where
// no creation can have been sent, one that has nothing of ours is somebody else's, however
// much it looks like the deleted one.
func (c Change) remade(live, wanted *unstructured.Unstructured) bool {
	return c.owns(live) || inherits(live, wanted) || !c.Fresh && (restored(live, wanted) || c.blank(live, wanted))
}

// restored reports whether an object is the re-created one, complete already. What
// controllers have made of it since does not count, nor which of its owners are
// there.
func restored(live, before *unstructured.Unstructured) bool {
	none := func(types.UID) types.UID { return "" }
	is, err := snapshot.Reown(live, none)
	if err != nil {
		return false
	}
	was, err := snapshot.Reown(before, none)
	if err != nil {
		return false
	}
	return sameContent(is, was) && equality.Semantic.DeepEqual(writtenBy(is), writtenBy(was))
}

func sameContent(live, before *unstructured.Unstructured) bool {
	return len(snapshot.Images{Before: snapshot.ForCreate(before), Live: snapshot.ForCreate(live)}.Drift()) == 0
}

// blank reports whether an object is the re-created one on which the API server
// tracks nothing of what a creation sends, such as a Role with an empty list of rules,
// though its fields had owners.
func (c Change) blank(live, wanted *unstructured.Unstructured) bool {
	return len(writtenBy(live)) == 0 && len(writtenBy(wanted)) > 0 && sameContent(live, wanted)
}

// inherits reports whether an object has an entry of the deleted one's managedFields
// that is older than itself. No creation makes such a one. A rollback does, when it
// completes what it has re-created, and what others write afterwards does not hide it.
func inherits(live, before *unstructured.Unstructured) bool {
	born := live.GetCreationTimestamp()
	was := writtenBy(before)
	return slices.ContainsFunc(writtenBy(live), func(e metav1.ManagedFieldsEntry) bool {
		return e.Time.Before(&born) && slices.ContainsFunc(was, func(old metav1.ManagedFieldsEntry) bool {
			return e.Manager == old.Manager && e.Operation == old.Operation && e.Time.Equal(old.Time)
		})
	})
}

// writtenBy gives the entries of who has written an object, controllers aside.
func writtenBy(obj *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, e := range exceptStatus(obj.GetManagedFields()) {
		if !snapshot.ControlPlane(e.Manager) {
			out = append(out, e)
		}
	}
	return out
}
