package fieldmerge

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// Two managers are names that the API server uses by itself.
const (
	// ancientChanges owns what the oldest of more than ten updaters owned.
	ancientChanges = "ancient-changes"
	// beforeFirstApply owns everything that was on an object without managedFields
	// when a client first applied to it.
	beforeFirstApply = "before-first-apply"
)

// claimed is every field that another client has asserted since the change: the
// only sign of a writer who wants the same value that we set. That is what they
// own in live and did not own before, and what they owned before and own in live
// although the change took it from them. The entries that the API server makes by
// itself assert nothing: ours may be among those that it merged. What is not
// readable is taken as claimed by nobody; RestoreOwners reports it.
func (i Images) claimed() *fieldpath.Set {
	out := fieldpath.NewSet()
	previous, err := entriesOf(i.former())
	if err != nil {
		return out
	}
	current, err := entriesOf(i.Live)
	if err != nil {
		return out
	}
	given, err := listOf(i.Given)
	if err != nil {
		return out
	}
	change, err := i.taking(previous.union().Union(current.union()))
	if err != nil {
		return out
	}
	live := lookupIn(i.Live.Object)
	for _, e := range current {
		if i.Ours(e.Manager) || i.HandedOver && i.LeftTo != "" && e.Manager == i.LeftTo || e.Manager == beforeFirstApply || e.Manager == ancientChanges {
			continue
		}
		had := previous.find(e.owner).set.Union(given.find(e.owner).set)
		// Of a field that is not shown nothing is taken: to own it says something when it is new.
		shown := shownAs(i.kind(), e.set).Difference(e.set).Difference(shownAs(i.kind(), had))
		e.set.Union(shown).Iterate(func(p fieldpath.Path) {
			// The API server may leave an owner a field that is not there any more, such as
			// one that has no meaning for another type of Service. That asserts nothing.
			if (!isStatus(p) || i.statusCounts()) && (!had.Has(p) || !i.HandedOver && change.from(e.owner, p)) && live.has(p) {
				out.Insert(p.Copy())
			}
		})
	}
	return out
}

func (i Images) former() *unstructured.Unstructured {
	if i.Former != nil {
		return i.Former
	}
	return i.Before
}

func isStatus(path fieldpath.Path) bool {
	return len(path) > 0 && path[0].FieldName != nil && *path[0].FieldName == "status"
}

func isMetadata(path fieldpath.Path) bool {
	return len(path) > 0 && path[0].FieldName != nil && *path[0].FieldName == "metadata"
}

// ownersBelow names the managers, ours aside, that own path or anything below it,
// or something atomic that path is part of.
func ownersBelow(obj *unstructured.Unstructured, path fieldpath.Path, ours func(string) bool) []string {
	return holdersOf(obj).below(path, ours)
}

// shownOf are the entries of an object, with what is shown of write-only fields. They are
// for asking, and not to be written.
func shownOf(obj *unstructured.Unstructured) (entries, error) {
	list, err := entriesOf(obj)
	for n := range list {
		list[n].set = shownAs(obj.GroupVersionKind().GroupKind(), list[n].set)
	}
	return list, err
}

// holds reports whether an entry has path or anything below it, or something
// atomic that path is part of. all is what anyone owns.
func (e entry) holds(all *fieldpath.Set, path fieldpath.Path) bool {
	return holdsBelow(e.set, path) || holdsAtomic(e.set, all, path)
}

func (l entries) union() *fieldpath.Set {
	out := fieldpath.NewSet()
	for _, e := range l {
		out = out.Union(e.set)
	}
	return out
}

// holdsAtomic reports whether a set holds something above path that nobody owns
// in parts.
func holdsAtomic(set, all *fieldpath.Set, path fieldpath.Path) bool {
	for n := len(path) - 1; n > 0; n-- {
		if set.Has(path[:n]) && isLeaf(all, path[:n]) {
			return true
		}
	}
	return false
}

// ownedByAnybody is everything that has an owner in one of the objects.
func ownedByAnybody(objects ...*unstructured.Unstructured) *fieldpath.Set {
	out := fieldpath.NewSet()
	for _, obj := range objects {
		if list, err := entriesOf(obj); err == nil {
			out = out.Union(list.union())
		}
	}
	return out
}
