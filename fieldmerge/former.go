package fieldmerge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// OwnersBefore are the managedFields of desired, which Restore has made: those of Live, without what
// the commit of the change has given to others. So it can be told, of an earlier change of the
// object, whether another client came in between. They are not to be written.
func (i Images) OwnersBefore(desired *unstructured.Unstructured) ([]metav1.ManagedFieldsEntry, error) {
	previous, err := entriesOf(i.former())
	if err != nil {
		return nil, err
	}
	current, err := entriesOf(i.Live)
	if err != nil {
		return nil, err
	}
	given, err := listOf(i.Given)
	if err != nil {
		return nil, err
	}
	var out []metav1.ManagedFieldsEntry
	there := lookupIn(desired.Object)
	for _, e := range current {
		had, gave := previous.find(e.owner).set, given.find(e.owner).set
		left := only(e.set, func(p fieldpath.Path) bool {
			byCommit := i.LeftTo != "" && e.Manager == i.LeftTo || gave.Has(p)
			return there.has(p) && (had.Has(p) || !byCommit)
		})
		if left.Empty() {
			continue
		}
		if e, err = e.with(left); err != nil {
			return nil, err
		}
		out = append(out, e.ManagedFieldsEntry)
	}
	return out, nil
}
