package fieldmerge

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// Restored reports whether the values are back already, and the owners not yet: one that
// the change had altered is as before, and belongs to the change's own manager. Nobody but
// a rollback writes it as that one, and all values at once. What has become of the others
// since is another client's doing.
func (i Images) Restored() bool {
	current, err := entriesOf(i.Live)
	if err != nil {
		return false
	}
	before, after, live := lookupIn(i.content(i.Before)), lookupIn(i.content(i.After)), lookupIn(i.content(i.Live))
	found := false
	for _, e := range current {
		if !i.Ours(e.Manager) || e.Operation != metav1.ManagedFieldsOperationUpdate {
			continue
		}
		e.set.Iterate(func(p fieldpath.Path) {
			was, had := before.at(p)
			is, has := live.at(p)
			made, did := after.at(p)
			altered := did != had || !reflect.DeepEqual(made, was)
			found = found || had && has && altered && !isContainer(was) && reflect.DeepEqual(is, was)
		})
	}
	return found
}
