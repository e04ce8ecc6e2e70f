package fieldmerge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// Taking lists what the step from before to after takes from each owner but those of
// Ours: the fields that it owns before and not after, in the version by which it owns them.
// After is what a dry run answered, with its managedFields.
func (i Images) Taking() ([]metav1.ManagedFieldsEntry, error) {
	previous, err := entriesOf(i.orEmpty(i.Before))
	if err != nil {
		return nil, err
	}
	next, err := entriesOf(i.orEmpty(i.After))
	if err != nil {
		return nil, err
	}
	var out []metav1.ManagedFieldsEntry
	for _, e := range others(previous, i.Ours) {
		taken := e.set.Difference(next.find(e.owner).set)
		if taken.Empty() {
			continue
		}
		if e, err = e.with(taken); err != nil {
			return nil, err
		}
		e.Time = nil
		out = append(out, e.ManagedFieldsEntry)
	}
	return out, nil
}

// taking tells what a change took from whom.
type taking struct {
	step
	// took is nil where the values alone tell.
	took  entries
	owned *fieldpath.Set // by anyone, before or now
}

func (i Images) taking(owned *fieldpath.Set) (taking, error) {
	took, err := listOf(i.Took)
	return taking{step: i.step(), took: took, owned: owned}, err
}

// from reports whether the change took a field from an owner.
func (t taking) from(o owner, path fieldpath.Path) bool {
	return t.took.find(o).set.Has(path) || t.takes(t.owned, path)
}

// abandoned are the fields and list items that an applier has left out of an apply since,
// and that are there all the same because the change had applied them too. Without it they
// would be gone. They are given back, so that the next apply removes them. What another
// client owns is not among them.
func (r restitution) abandoned(had, now entry) *fieldpath.Set {
	out := fieldpath.NewSet()
	if had.Operation != metav1.ManagedFieldsOperationApply || had.APIVersion != r.live.GetAPIVersion() || now.APIVersion != had.APIVersion {
		return out
	}
	had.set.Difference(now.set).Iterate(func(p fieldpath.Path) {
		if r.mine.Has(p) && !holdsBelow(r.theirs, p) && r.values.has(p) {
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
	after := lookupIn(i.orEmpty(i.After).Object)
	for _, e := range previous {
		if i.Ours(e.Manager) {
			continue
		}
		taken := OwnedFields{Manager: e.Manager, Subresource: e.Subresource}
		e.set.Difference(next.find(e.owner).set).Leaves().Iterate(func(p fieldpath.Path) {
			taken.Paths = append(taken.Paths, p.String())
			if !after.has(p) {
				taken.Removed = append(taken.Removed, p.String())
			}
		})
		if len(taken.Paths) > 0 {
			out = append(out, taken)
		}
	}
	return out, nil
}
