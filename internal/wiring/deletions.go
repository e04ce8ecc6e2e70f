package wiring

import (
	"context"
	"errors"
	"fmt"
	"strings"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/fanout"
)

// A target may be deleted in place of a change, because of whenFalse Delete. What that would do is looked
// at before anything is done, as for every other change.

// undeletable refuses to delete what the Transaction itself would go with.
func (f *preflight) undeletable(v *validation) []plan.Problem {
	var out []plan.Problem
	for i := range f.txn.Status.Items {
		ref, err := refOf(f.txn.Status.Items[i])
		if err != nil || ref.GVR.Resource == "" || !plan.MayBeDeleted(f.txn, i) {
			continue
		}
		if err := v.outlived(ref); err != nil {
			out = append(out, plan.Problem{Item: i, Err: f.because(i, err)})
		}
	}
	return out
}

// tryDeletions looks for deletions that could not be rolled back and are not allowed to be. What else may
// keep a target from being deleted is found when it is to be: it may well not be.
func (f *preflight) tryDeletions(ctx context.Context) ([]plan.Problem, error) {
	var these []int
	for _, i := range f.sound() {
		if plan.MayBeDeleted(f.txn, i) && !f.txn.Status.Items[i].Deferred && f.before(i) == "" {
			these = append(these, i)
		}
	}
	found := make([]error, len(these))
	fanout.Do(f.parallel, len(these), func(n int) {
		s := f.session
		s.txn = plan.AsDeleted(f.txn, these[n])
		o, err := s.look(ctx, these[n], earlier{})
		o.done()
		found[n] = err
	})
	var problems []plan.Problem
	for n, err := range found {
		switch {
		case err != nil && mayHeal(err):
			return nil, err
		case errclass.Is(err, errclass.Irreversible):
			problems = append(problems, plan.Problem{Item: these[n], Err: f.because(these[n], err)})
		}
	}
	return problems, nil
}

// because says in an error why the target of an item would be deleted.
func (f *preflight) because(i int, err error) error {
	var found *errclass.Error
	if !errors.As(err, &found) {
		return err
	}
	own := *found
	own.Err = fmt.Errorf("it would be deleted %s: %w", f.ifFalse(i), found.Err)
	return &own
}

// ifFalse says when the target of an item is deleted.
func (f *preflight) ifFalse(i int) string {
	names := f.txn.Status.Items[i].DeletedWith
	switch own := f.txn.Spec.Changes[i].WhenFalse == api.WhenFalseDelete; {
	case own && len(names) > 0:
		return "if its when is false, or that of " + strings.Join(names, " or ")
	case own:
		return "if its when is false"
	default:
		return "if the when of " + strings.Join(names, " or ") + " is false"
	}
}
