package snapshot

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// HandOver gives managedFields as they are to stay after a commit. The entries of
// the change go. A field that somebody owned before it is theirs again, with the
// value that the change gave it, so that their next apply neither meets a conflict
// nor loses sight of the field. What nobody owned goes to one applier, heir, that
// is the same for every Transaction. The second result says whether anything is to
// be written. Before is nil for an object that the Transaction made.
//
// Nothing is left to a manager that is passing: one of a Transaction that has ended
// half-way would take the value for its own when it goes on, and undo it.
//
// Fields of another version of the kind cannot be compared with ours: those that
// were taken from an owner who wrote by another version stay with heir.
func (i Images) HandOver(heir string, passing func(manager string) bool) ([]metav1.ManagedFieldsEntry, bool, error) {
	previous, err := entriesOf(i.orEmpty(i.Before))
	if err != nil {
		return nil, false, err
	}
	current, err := entriesOf(i.Live)
	if err != nil {
		return nil, false, err
	}
	kept := others(current, i.Ours)
	if len(kept) == len(current) {
		return nil, false, nil
	}
	if i.Before != nil && len(previous) == 0 {
		// Nothing was owned until our apply made the API server record all of it.
		kept = kept.without(beforeFirstApply)
	}
	for _, mine := range current {
		if !i.Ours(mine.Manager) {
			continue
		}
		if kept, err = mine.leaveTo(kept, others(previous, passing), i.Live, passing, heir); err != nil {
			return nil, false, err
		}
	}
	out := make([]metav1.ManagedFieldsEntry, 0, len(kept))
	for _, e := range kept {
		out = append(out, e.ManagedFieldsEntry)
	}
	sortAsServer(out)
	return out, true, nil
}

func (l entries) without(manager string) entries {
	var out entries
	for _, e := range l {
		if e.Manager != manager {
			out = append(out, e)
		}
	}
	return out
}

func (i Images) orEmpty(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj == nil {
		return &unstructured.Unstructured{Object: map[string]any{}}
	}
	return obj
}

// leaveTo divides the fields of an entry among those who owned them before and, for
// the rest, the heir.
func (e entry) leaveTo(kept, previous entries, live *unstructured.Unstructured, passing func(string) bool, heir string) (entries, error) {
	rest := e.set
	for _, had := range previous {
		if had.APIVersion != e.APIVersion {
			continue
		}
		back := only(had.set.Intersection(e.set), func(p fieldpath.Path) bool { return exists(live.Object, p) })
		var err error
		if kept, err = kept.give(had, back); err != nil {
			return nil, err
		}
		rest = rest.Difference(back)
	}
	for _, other := range kept {
		if other.APIVersion == e.APIVersion && other.Manager != heir && !passing(other.Manager) {
			rest = rest.Difference(other.set)
		}
	}
	to := e
	to.Manager, to.Operation, to.Subresource = heir, metav1.ManagedFieldsOperationApply, ""
	to.owner = ownerOf(to.ManagedFieldsEntry)
	return kept.give(to, rest)
}

// give adds fields to the entry of an owner, which is made like the given one where
// it is missing. The API server keeps one entry of an applier, whatever its version: of
// one that has applied by another version, the fields become those of an updater.
func (l entries) give(to entry, fields *fieldpath.Set) (entries, error) {
	if fields.Empty() {
		return l, nil
	}
	if slices.ContainsFunc(l, func(e entry) bool { return e.owner == to.owner && e.APIVersion != to.APIVersion }) {
		to.Operation = metav1.ManagedFieldsOperationUpdate
		to.owner = ownerOf(to.ManagedFieldsEntry)
	}
	for i := range l {
		if l[i].owner == to.owner && l[i].APIVersion == to.APIVersion {
			var err error
			l[i], err = l[i].with(l[i].set.Union(fields))
			return l, err
		}
	}
	to, err := to.with(fields)
	return append(l, to), err
}

func only(set *fieldpath.Set, keep func(fieldpath.Path) bool) *fieldpath.Set {
	out := fieldpath.NewSet()
	set.Iterate(func(p fieldpath.Path) {
		if keep(p) {
			out.Insert(p.Copy())
		}
	})
	return out
}

// OwnedFields are fields of a manager.
type OwnedFields struct {
	Manager, Subresource string
	Paths                []string
	// Removed are those of Paths that are not there any more.
	Removed []string
}

// Taken lists what the step from before to after takes from managers that are not
// ours: fields that they own before it and not after it.
func (i Images) Taken() ([]OwnedFields, error) {
	previous, err := entriesOf(i.orEmpty(i.Before))
	if err != nil {
		return nil, err
	}
	next, err := entriesOf(i.orEmpty(i.After))
	if err != nil {
		return nil, err
	}
	var out []OwnedFields
	for _, e := range previous {
		if i.Ours(e.Manager) {
			continue
		}
		taken := OwnedFields{Manager: e.Manager, Subresource: e.Subresource}
		e.set.Difference(next.find(e.owner).set).Leaves().Iterate(func(p fieldpath.Path) {
			taken.Paths = append(taken.Paths, p.String())
			if !exists(i.After.Object, p) {
				taken.Removed = append(taken.Removed, p.String())
			}
		})
		if len(taken.Paths) > 0 {
			out = append(out, taken)
		}
	}
	return out, nil
}
