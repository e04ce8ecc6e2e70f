package fieldmerge

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// dropped are the fields that the change has left alone, and that are not there any more though
// they have an owner: one that a client removes has none. The API server has dropped them from a
// write, this change's too, or does not show them, because the kind has lost them. What a change
// that has committed lost with its kind is no matter of its undo.
func (i Images) dropped() *fieldpath.Set {
	out := fieldpath.NewSet()
	if i.HandedOver || !Custom(i.kind()) {
		return out
	}
	change := i.step()
	for _, f := range Unshown(i.Live, func(version string) bool { return version == i.Live.GetAPIVersion() }) {
		if change.leaves(f.path) {
			out.Insert(f.path)
		}
	}
	return out
}

// putBack are the fields that a rollback has restored though the change had left them alone:
// an update by a manager of the change owns nothing else of the sort.
func (i Images) putBack(current entries) *fieldpath.Set {
	out := fieldpath.NewSet()
	if i.HandedOver || !Custom(i.kind()) {
		return out
	}
	change := i.step()
	for _, e := range current {
		if !i.Ours(e.Manager) || e.Operation != metav1.ManagedFieldsOperationUpdate {
			continue
		}
		e.set.Iterate(func(p fieldpath.Path) {
			if change.leaves(p) {
				out.Insert(p.Copy())
			}
		})
	}
	return out
}

// leaves reports whether a field is there before the step and after it, with the same value.
func (s step) leaves(path fieldpath.Path) bool {
	before, had := s.before.at(path)
	after, has := s.after.at(path)
	return had && has && reflect.DeepEqual(before, after)
}
