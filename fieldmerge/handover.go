package fieldmerge

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
)

// Hands say to whom the fields of a committed change go.
type Hands struct {
	// Own is the applier that keeps what marks an object as made by a Transaction.
	Own string
	// Passing tells managers to which nothing is left: one of a Transaction that has ended
	// half-way would take the value for its own when it goes on, and undo it.
	Passing func(manager string) bool
	// Left is the applier that is to own what nobody owned before; empty for nobody.
	Left string
	// Content is what the changes have set, where what they own tells more than that: a
	// write that is no apply owns the defaults as well.
	Content []map[string]any
	// Owners are who owned the fields before the change that this one undoes.
	Owners []metav1.ManagedFieldsEntry
	// Release says who is to own which of the fields no more, though they owned them before; nil for
	// nobody.
	Release *Release
}

// HandOver returns managedFields as they are to stay after a commit. The entries of
// the change go. A field that had an owner before it belongs to that owner again, with
// the value that the change gave it, so that the owner's next apply neither meets a
// conflict nor loses sight of the field. What nobody owned, or is released, has no owner, or is
// Left's. What another client has written since is not the change's any more, and not released.
// The second result says whether anything is to be written. Before is nil for an object
// that the Transaction made.
//
// Fields of another version of the kind cannot be compared with ours: who wrote by another
// version gets back all that is missing, unless another client has come to own fields since.
func (i Images) HandOver(to Hands) ([]metav1.ManagedFieldsEntry, bool, error) {
	previous, err := entriesOf(i.orEmpty(i.Before))
	if err != nil {
		return nil, false, err
	}
	former, err := listOf(to.Owners)
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
	h := handing{Images: i, Hands: to, passing: others(append(current, previous...), func(manager string) bool { return i.Ours(manager) || !to.Passing(manager) })}
	h.content, h.live = i.contentSet(to.Content), lookupIn(i.Live.Object)
	if i.Before != nil {
		h.before = lookupIn(i.Before.Object)
	}
	if kept, err = h.otherVersions(kept, others(previous, to.Passing)); err != nil {
		return nil, false, err
	}
	if to.Release != nil {
		if kept, previous, err = i.released(*to.Release, kept, previous, current); err != nil {
			return nil, false, err
		}
	}
	owners := append(others(previous, to.Passing), others(former, to.Passing)...)
	for _, mine := range current {
		if !i.Ours(mine.Manager) {
			continue
		}
		if kept, err = h.leave(mine, kept, owners); err != nil {
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

// released takes from who owns fields, now and before, what is released of those that the change
// has now.
func (i Images) released(r Release, kept, previous, current entries) (now, before entries, err error) {
	mine := fieldpath.NewSet()
	for _, e := range current {
		if i.Ours(e.Manager) {
			mine = mine.Union(e.set)
		}
	}
	fields, err := r.of(previous, i.Live.GetAPIVersion())
	if err != nil {
		return nil, nil, err
	}
	if fields, err = fields.within(mine); err != nil {
		return nil, nil, err
	}
	if now, err = kept.less(fields); err != nil {
		return nil, nil, err
	}
	before, err = previous.less(fields)
	return now, before, err
}

type handing struct {
	Images
	Hands
	content *fieldpath.Set
	passing entries
	// live and before are the values of these images; before is nil if there is none.
	live, before *lookup
}

// leave divides the fields of an entry among those who owned them before and, for
// the rest, Left.
func (h handing) leave(e entry, kept, previous entries) (entries, error) {
	rest := e.set
	for _, had := range previous {
		if had.APIVersion != e.APIVersion {
			continue
		}
		// The API server keeps the applier of an object or a list that it has left out for
		// having nothing in it.
		back := only(h.givenBack(had.set, e.set), func(p fieldpath.Path) bool {
			return h.live.has(p) || h.before != nil && !h.before.has(p)
		})
		var err error
		if kept, err = kept.give(had, back); err != nil {
			return nil, err
		}
		rest = rest.Difference(back)
	}
	for _, other := range kept {
		if other.APIVersion == e.APIVersion && other.Manager != h.Own && !h.Passing(other.Manager) {
			rest = rest.Difference(other.set)
		}
	}
	marks := only(rest, func(p fieldpath.Path) bool { return isMark(p) || h.passing.holdsAny(p) })
	kept, err := kept.give(h.applier(e, h.Own), marks)
	if err != nil || h.Left == "" {
		return kept, err
	}
	rest = rest.Difference(marks)
	if e.Operation != metav1.ManagedFieldsOperationApply {
		rest = rest.Intersection(h.content)
	}
	left := h.applier(e, h.Left)
	if h.Release != nil && kept.appliedOtherwise(left) {
		return kept, nil // An updater of its name would be in its way as who released them was.
	}
	return kept.give(left, rest)
}

// appliedOtherwise reports whether an applier has applied by another version.
func (l entries) appliedOtherwise(by entry) bool {
	return slices.ContainsFunc(l, func(e entry) bool { return e.owner == by.owner && e.APIVersion != by.APIVersion })
}

// givenBack is what of the fields of an entry another owner had. Who is to have released fields
// again has had the objects and lists around them too, of which an apply owns the parts alone.
func (h handing) givenBack(had, mine *fieldpath.Set) *fieldpath.Set {
	if h.Release == nil {
		return had.Intersection(mine)
	}
	return only(had, func(p fieldpath.Path) bool { return holdsBelow(mine, p) })
}

// applier is an entry like the given one, of an applier of that name.
func (h handing) applier(e entry, manager string) entry {
	e.Manager, e.Operation, e.Subresource = manager, metav1.ManagedFieldsOperationApply, ""
	e.owner = ownerOf(e.ManagedFieldsEntry)
	return e
}

// otherVersions gives back what those are missing who wrote by another version of the kind.
func (h handing) otherVersions(kept, previous entries) (entries, error) {
	for _, had := range previous {
		now := kept.find(had.owner)
		if had.APIVersion == h.Live.GetAPIVersion() || kept.has(had.owner) && !now.Time.Equal(had.Time) {
			continue
		}
		for _, e := range kept {
			claimed := e.set.Difference(previous.find(e.owner).set)
			if e.owner != had.owner && !only(claimed, func(p fieldpath.Path) bool { return !isMetadata(p) && !isStatus(p) }).Empty() {
				return kept, nil
			}
		}
		var err error
		if kept, err = kept.give(had, had.set.Difference(now.set)); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// isMark reports whether a field is one by which Janus tells whose an object is.
func isMark(path fieldpath.Path) bool {
	return len(path) == 3 && isMetadata(path) && path[2].FieldName != nil && strings.HasPrefix(*path[2].FieldName, "janus.io/")
}

func (l entries) holdsAny(path fieldpath.Path) bool {
	return slices.ContainsFunc(l, func(e entry) bool { return e.set.Has(path) })
}

// contentSet are the fields that an apply of the contents would own.
func (i Images) contentSet(contents []map[string]any) *fieldpath.Set {
	out := fieldpath.NewSet()
	types := i.Type
	if types.Schema == nil {
		types = typed.DeducedParseableType
	}
	for _, content := range contents {
		body := (&unstructured.Unstructured{Object: content}).DeepCopy()
		for _, field := range []string{"apiVersion", "kind", "status"} {
			delete(body.Object, field)
		}
		for _, field := range append([]string{"name", "namespace"}, serverSet...) {
			unstructured.RemoveNestedField(body.Object, "metadata", field)
		}
		value, err := types.FromUnstructured(body.Object, typed.AllowDuplicates)
		if err != nil {
			continue
		}
		if set, err := value.ToFieldSet(); err == nil {
			out = out.Union(set)
		}
	}
	return shownAs(i.kind(), out)
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

// give adds fields to the entry of an owner, which is made like the given one where
// it is missing. The API server keeps one entry of an applier, whatever its version: of
// one that has applied by another version, the fields become those of an updater.
func (l entries) give(to entry, fields *fieldpath.Set) (entries, error) {
	if fields.Empty() {
		return l, nil
	}
	if l.appliedOtherwise(to) {
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
