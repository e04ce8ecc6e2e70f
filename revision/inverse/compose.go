package inverse

import (
	"cmp"
	"slices"

	"janus.io/janus/api/v1alpha1"
)

// Step is one change that was made, as far as the composition needs to know it.
type Step struct {
	// Target is the object that was changed.
	Target v1alpha1.Target
	// Type is the type of the change.
	Type v1alpha1.ChangeType
	// Existed says that the target was there before the change.
	Existed bool
	// Idle says that nothing was written, so that nothing has to be undone.
	Idle bool
}

// existsAfter reports whether the target was there after the change.
func (s Step) existsAfter() bool { return s.Type != v1alpha1.Delete }

// Change undoes all changes of one target.
type Change struct {
	// Type is Create, Update or Delete.
	Type v1alpha1.ChangeType
	// Steps are the changes that it undoes, by their position, the newest first. What is on
	// record of the oldest is how the target is to be.
	Steps []int

	at int // where it comes in the reverse order
}

// newest and oldest are positions of changes that are undone.
func (c Change) newest() int { return c.Steps[0] }
func (c Change) oldest() int { return c.Steps[len(c.Steps)-1] }

// composed is the type of the change from what the newest step left to what was before the oldest;
// none if the target was neither there before nor is it now.
func composed(before, now bool) (kind v1alpha1.ChangeType, something bool) {
	switch {
	case before && now:
		return v1alpha1.Update, true
	case before:
		return v1alpha1.Create, true
	case now:
		return v1alpha1.Delete, true
	default:
		return "", false
	}
}

// Compose returns the changes that undo steps, which are given in the order in which they were
// made. They come in reverse order, as far as one change for each target can:
//
//   - What is created again comes where it was deleted: what was in it, or needed it, comes after
//     that.
//   - What is updated comes where it was changed first: by then, all that it needed then is there
//     again.
//   - What is deleted comes where it was created, when nothing is left that was made for it since;
//     and after each update of an object that was changed before and since: until that, it may
//     still be in use.
func Compose(steps []Step) []Change {
	var order []v1alpha1.Target
	by := map[v1alpha1.Target]*Change{}
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].Idle || steps[i].Type == v1alpha1.Delete && !steps[i].Existed {
			continue
		}
		target := steps[i].Target.Identity()
		if by[target] == nil {
			by[target] = &Change{}
			order = append(order, target)
		}
		by[target].Steps = append(by[target].Steps, i)
	}
	var out []Change
	for _, target := range order {
		change := *by[target]
		kind, something := composed(steps[change.oldest()].Existed, steps[change.newest()].existsAfter())
		if !something {
			continue
		}
		if change.Type, change.at = kind, change.oldest(); kind == v1alpha1.Create {
			change.at = change.newest()
		}
		out = append(out, change)
	}
	return inOrder(out)
}

func inOrder(changes []Change) []Change {
	for i := range changes {
		if changes[i].Type != v1alpha1.Delete {
			continue
		}
		made := changes[i].oldest()
		for _, other := range changes {
			if other.Type == v1alpha1.Update && other.oldest() < made && made < other.newest() {
				changes[i].at = min(changes[i].at, other.at)
			}
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(
			cmp.Compare(b.at, a.at),
			// At the same place are an update, and deletions that wait for it.
			cmp.Compare(rank(a), rank(b)),
			cmp.Compare(b.oldest(), a.oldest()),
		)
	})
	return changes
}

func rank(c Change) int {
	if c.Type == v1alpha1.Delete {
		return 1
	}
	return 0
}
