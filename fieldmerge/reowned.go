package fieldmerge

import (
	"fmt"
	"sort"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// Reowned lists the fields that another client has come to own since the before-image, or
// that who applied them has given up, whatever their values: a rollback would restore
// the owners of the before-image. What controllers own by their nature does not count.
func (i Images) Reowned() ([]FieldConflict, error) {
	previous, err := entriesOf(i.Before)
	if err != nil {
		return nil, fmt.Errorf("the before-image: %w", err)
	}
	current, err := entriesOf(i.Live)
	if err != nil {
		return nil, err
	}
	changed := fieldpath.NewSet()
	for _, e := range current {
		// The API server makes these entries of those of others.
		if e.Manager != beforeFirstApply && e.Manager != ancientChanges {
			changed = changed.Union(e.set.Leaves().Difference(previous.find(e.owner).set))
		}
	}
	for _, e := range previous {
		if e.Operation == metav1.ManagedFieldsOperationApply {
			changed = changed.Union(e.set.Leaves().Difference(current.find(e.owner).set))
		}
	}
	return i.reowned(changed), nil
}

func (i Images) reowned(changed *fieldpath.Set) []FieldConflict {
	var out []FieldConflict
	live, owners := lookupIn(i.Live.Object), holdersOf(i.Live)
	seen := sets.New[string]()
	changed.Iterate(func(p fieldpath.Path) {
		if isStatus(p) && !i.statusCounts() || i.isControllers(p) || !live.has(p) || seen.Has(p.String()) {
			return
		}
		seen.Insert(p.String())
		now, _ := live.at(p)
		out = append(out, FieldConflict{Path: p.String(), Managers: owners.below(p, nobodys), Now: now, path: p.Copy()})
	})
	sort.Slice(out, func(a, b int) bool { return out[a].Path < out[b].Path })
	return out
}
