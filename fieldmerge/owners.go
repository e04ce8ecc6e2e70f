package fieldmerge

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// RestoreOwners returns managedFields as they were before the change, as far as
// others have not written since: our entries go, and what each manager owned
// before and lost to the change comes back to it, limited to fields that exist. An
// applier may own an object or a list that the server has left out for having nothing
// in it; so it does again.
// Fields that another client has claimed since stay theirs alone. Live is the object
// with its values restored already. The second result says whether anything is to
// be written.
//
// What was lost to the change is told from what a manager gave up by itself by what a dry
// run of the change took, and where none was made by the values: a change takes a field by
// changing it.
func (i Images) RestoreOwners() ([]metav1.ManagedFieldsEntry, bool, error) {
	previous, err := entriesOf(i.Before)
	if err != nil {
		return nil, false, err
	}
	current, err := entriesOf(i.Live)
	if err != nil {
		return nil, false, err
	}
	owned := previous.union().Union(current.union())
	change, err := i.taking(owned)
	if err != nil {
		return nil, false, err
	}
	r := restitution{change: change, taken: i.claimed(), owned: owned, live: i.Live, values: lookupIn(i.Live.Object), mine: fieldpath.NewSet(), put: i.putBack(current)}
	for _, e := range current {
		if i.Ours(e.Manager) {
			r.mine = r.mine.Union(e.set)
		}
	}
	r.theirs = others(current, i.Ours).without(beforeFirstApply).union()
	current, err = r.withoutServersOwn(previous, others(current, i.Ours))
	if err != nil {
		return nil, false, err
	}
	var out []metav1.ManagedFieldsEntry
	add := func(e, had entry) error {
		e, err := e.with(e.set.Union(r.lost(had, e)).Union(r.abandoned(had, e)))
		if err == nil && !e.set.Empty() {
			out = append(out, e.ManagedFieldsEntry)
		}
		return err
	}
	for _, e := range current {
		if err := add(e, previous.find(e.owner)); err != nil {
			return nil, false, err
		}
	}
	for _, had := range previous {
		if current.has(had.owner) {
			continue
		}
		vanished := had
		vanished.set = fieldpath.NewSet()
		if err := add(vanished, had); err != nil {
			return nil, false, err
		}
	}
	sortAsServer(out)
	return out, !sameEntries(out, i.Live.GetManagedFields()), nil
}

func others(l entries, ours func(string) bool) entries {
	var out entries
	for _, e := range l {
		if !ours(e.Manager) {
			out = append(out, e)
		}
	}
	return out
}

// restitution finds out what owners get back.
type restitution struct {
	change taking
	taken  *fieldpath.Set
	owned  *fieldpath.Set // by anyone, before or now
	// mine and theirs are what the change owns now, and what anyone else does.
	mine, theirs *fieldpath.Set
	put          *fieldpath.Set // back, though the change had left it alone
	live         *unstructured.Unstructured
	values       *lookup // of live
}

// lost is what an owner had before, does not have now, and lost to the change.
// Paths of another version of the kind cannot be looked up in the objects at hand: they
// come back together when their owner has written nothing since, and nobody has come to own
// anything but metadata, which is the same in all versions.
func (r restitution) lost(had, now entry) *fieldpath.Set {
	gone := had.set.Difference(now.set)
	if now.APIVersion != had.APIVersion {
		return fieldpath.NewSet()
	}
	if !gone.Empty() && had.APIVersion != r.live.GetAPIVersion() {
		if !had.Time.Equal(now.Time) || !only(r.taken, func(p fieldpath.Path) bool { return !isMetadata(p) }).Empty() {
			return fieldpath.NewSet()
		}
		if r.change.took != nil {
			gone = gone.Intersection(r.change.took.find(had.owner).set)
		}
		return gone.Difference(r.taken)
	}
	out := fieldpath.NewSet()
	gone.Iterate(func(p fieldpath.Path) {
		now, there := r.values.at(p)
		there = there || !r.change.before.has(p)
		// Several may own an object or a list of which each owns a part.
		shared := isContainer(now) && !isLeaf(r.owned, p)
		if there && (r.change.from(had.owner, p) || r.put.Has(p)) && (shared || !r.taken.Has(p)) {
			out.Insert(p.Copy())
		}
	})
	return out
}

// withoutServersOwn undoes what the API server did to other entries because ours
// was added. An apply to an object without managedFields makes one of everything
// that was there. More than ten updaters make it merge the oldest of them, ours
// perhaps among them.
func (r restitution) withoutServersOwn(previous, current entries) (entries, error) {
	if len(previous) == 0 {
		current = current.without(beforeFirstApply)
	}
	var out entries
	for _, e := range current {
		if e.Manager != ancientChanges {
			out = append(out, e)
			continue
		}
		apart, err := r.takeApart(e, previous, current)
		if err != nil {
			return nil, err
		}
		out = append(out, apart...)
	}
	return out, nil
}

// takeApart gives the updaters that were merged what they had, and leaves out what
// was ours. If the server still finds them too many, it merges them again.
func (r restitution) takeApart(merged entry, previous, current entries) (entries, error) {
	had := previous.find(merged.owner)
	added := merged.set.Difference(had.set)
	rest := merged.set
	var out entries
	for _, p := range previous {
		if p.Operation != metav1.ManagedFieldsOperationUpdate || p.APIVersion != merged.APIVersion || current.has(p.owner) {
			continue
		}
		kept, err := p.with(p.set.Intersection(added))
		if err != nil {
			return nil, err
		}
		if !kept.set.Empty() {
			out, rest = append(out, kept), rest.Difference(kept.set)
		}
	}
	added.Iterate(func(p fieldpath.Path) {
		if r.change.takes(r.owned, p) && r.isBack(p) {
			rest = rest.Difference(fieldpath.NewSet(p.Copy()))
		}
	})
	switch {
	case rest.Empty():
		return out, nil
	case rest.Equals(had.set):
		return append(out, had), nil
	default:
		left, err := merged.with(rest)
		return append(out, left), err
	}
}

// isBack reports whether a field has the value that it had before the change.
func (r restitution) isBack(p fieldpath.Path) bool {
	before, inBefore := r.change.before.at(p)
	now, inLive := r.values.at(p)
	return inBefore == inLive && reflect.DeepEqual(before, now)
}
