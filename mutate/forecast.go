package mutate

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
)

// Forecast is what is known of a change before it is made.
type Forecast struct {
	// After is what the change makes of the target; nil for a Delete, and where that
	// cannot be known.
	After *unstructured.Unstructured
	// Taken is what it takes from other managers.
	Taken []fieldmerge.OwnedFields
	// Took is what it takes from whom, in the version by which they own it: what a rollback
	// gives back.
	Took []metav1.ManagedFieldsEntry
	// Idle is set when the change would leave the target as it is, its field owners too.
	Idle bool
	// Warnings say what is hard to roll back about it.
	Warnings []string
}

// Foresee finds out, without effect, what a change would do to the target as it is.
// to says who is to own its fields then. An error means that the change is refused, or could not be rolled back.
func Foresee(ctx context.Context, s Strategy, c Change, to Ownership, before *unstructured.Unstructured) (Forecast, error) {
	warnings, err := s.Admit(ctx, c, before)
	if err != nil {
		return Forecast{}, err
	}
	unseen, err := c.admitWhole(ctx, before, "prepare")
	if err != nil {
		return Forecast{}, err
	}
	narrowed, err := c.admitNarrowed(ctx, s, before, "prepare")
	if err != nil {
		return Forecast{}, err
	}
	warnings = append(append(warnings, unseen...), narrowed...)
	after, err := s.Try(ctx, c, BaselineOf(before))
	if err != nil {
		return Forecast{}, err
	}
	if after == nil {
		return Forecast{Warnings: warnings}, nil
	}
	out, err := c.foreseen(ctx, s, to, before, after)
	if err == nil && c.Release != nil {
		err = c.foreseeRelease(ctx, to, before, after, &out)
	}
	if err != nil {
		return Forecast{}, err
	}
	out.Warnings = append(warnings, out.Warnings...)
	return out, nil
}

// foreseen is what follows from what a dry run of the change has answered.
func (c Change) foreseen(ctx context.Context, s Strategy, to Ownership, before, after *unstructured.Unstructured) (Forecast, error) {
	warnings, err := c.admitPivot(ctx, before, after)
	if err != nil {
		return Forecast{}, err
	}
	taken, err := c.takes(before, after)
	if err != nil {
		return Forecast{}, err
	}
	took, err := fieldmerge.Images{Before: before, After: after, Ours: c.Names.ours}.Taking()
	if err != nil {
		return Forecast{}, c.unreadableOwners(err)
	}
	idle, err := c.leavesAsIs(ctx, to, before, after)
	if err != nil {
		return Forecast{}, err
	}
	answer, err := c.admitAnswer(ctx, s, before, after)
	if err != nil {
		return Forecast{}, err
	}
	warnings = append(append(append(warnings, c.ownHarm(before, after)...), c.removes(taken)...), answer...)
	return Forecast{After: fieldmerge.Outcome(before, after), Taken: taken, Took: took, Idle: idle, Warnings: warnings}, nil
}

// removes warns of what others have written and the change removes, as an Update
// does whose content was made without looking at the target.
func (c Change) removes(taken []fieldmerge.OwnedFields) []string {
	var out []string
	for _, t := range taken {
		if len(t.Removed) == 0 {
			continue
		}
		text := "it removes what " + errclass.Printable(t.Manager) + " has written: " + c.path(t.Removed[0])
		if more := len(t.Removed) - 1; more > 0 {
			text += fmt.Sprintf(", and %d more", more)
		}
		out = append(out, c.warn(text)...)
	}
	return out
}

// path is a path as it may be shown.
func (c Change) path(path string) string {
	if c.Sensitive {
		path = errclass.FieldOnly(path)
	}
	return errclass.Printable(path)
}

// takes lists what the step from before to after takes from others. What is taken
// from other items of the Transaction, or from what earlier ones have left, does
// not count.
func (c Change) takes(before, after *unstructured.Unstructured) ([]fieldmerge.OwnedFields, error) {
	taken, err := fieldmerge.Images{Before: before, After: after, Ours: family}.Taken()
	if err != nil {
		return nil, c.fail(errclass.Terminal, errclass.Invalid, "prepare", "its field owners cannot be read: %w", err)
	}
	return taken, nil
}
