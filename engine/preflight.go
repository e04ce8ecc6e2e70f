package engine

import (
	"context"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// preflight tries every change without effect before anything is taken for the
// Transaction: no lock is held meanwhile, and all that is wrong is reported at once.
type preflight struct{ *saga }

// validate accepts the spec: from here on the generation is pinned.
func (s preflight) validate(ctx context.Context) error {
	if s.txn.Spec.UndoOf != nil && s.txn.Status.Undoing == nil {
		return s.find(ctx)
	}
	found, err := s.tryAll(ctx)
	switch {
	case plan.Definite(err):
		return ending(s).fail(ctx, plan.CauseOf(err))
	case err != nil:
		return err
	case found.Unfinished:
		return s.begun(ctx)
	case len(found.Problems) > 0:
		return s.refuse(ctx, found)
	case s.txn.Spec.DryRun:
		return ending(s).end(ctx, false, func(status *api.TransactionStatus) error {
			s.pass(status, found)
			return plan.MovePhase(status, api.PhasePlanned)
		})
	}
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		s.pass(status, found)
		return s.goOn(status, found)
	})
}

// begun records, once, that a pre-flight has begun that is to be resumed: from then on the time of the
// Transaction runs.
func (s preflight) begun(ctx context.Context) error {
	if s.txn.Status.StartTime != nil {
		return nil
	}
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		s.accept(status)
		return plan.MovePhase(status, plan.OrPending(status.Phase))
	})
}

// goOn has the plan stand if someone has to approve it, and the changes be prepared otherwise.
func (s preflight) goOn(status *api.TransactionStatus, found plan.Preflight) error {
	if plan.NeedsApproval(s.txn) {
		plan.Stand(s.txn, status, found.Account, *s.now())
		return plan.MovePhase(status, plan.OrPending(status.Phase))
	}
	return plan.MovePhase(status, api.PhasePreparing)
}

// tryAll tries every change. A plan stands only where nobody can approve it who may not.
func (s preflight) tryAll(ctx context.Context) (plan.Preflight, error) {
	if plan.NeedsApproval(s.txn) {
		if err := s.Approvals.Guarded(ctx, s.txn); err != nil {
			return plan.Preflight{}, err
		}
	}
	return s.Planner.Validate(ctx, s.txn, s.enough)
}

// pass records what was tried, and with what result. What an earlier pre-flight has refused, for a
// plan that was approved and has changed, is no matter any more.
func (s preflight) pass(status *api.TransactionStatus, found plan.Preflight) {
	plan.ForgetCause(status)
	status.Items, found.GoesOn = found.Items, plan.GoesOn(s.txn)
	plan.DateResults(status.Items, *s.now())
	s.accept(status)
	plan.SetValidated(status, s.txn.Generation, s.clock.Now(), found)
}

// refuse goes on without the changes that the pre-flight has refused, if that is wanted and any are
// left.
func (s preflight) refuse(ctx context.Context, found plan.Preflight) error {
	left, err := plan.SetApart(s.txn, found)
	if err != nil {
		return err
	}
	if !left || s.txn.Spec.DryRun {
		return s.refuseAll(ctx, found)
	}
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		s.pass(status, found)
		plan.SetPartlyRefused(status, s.txn.Generation, s.clock.Now(), found.Problems)
		return s.goOn(status, found)
	})
}

// refuseAll ends a Transaction that the pre-flight found something wrong with. Nothing
// has been taken for it but the finalizer.
func (s preflight) refuseAll(ctx context.Context, found plan.Preflight) error {
	return ending(s).end(ctx, false, func(status *api.TransactionStatus) error {
		status.Items = found.Items
		plan.DateResults(status.Items, *s.now())
		s.accept(status)
		plan.SetRefused(status, s.txn.Generation, s.clock.Now(), found)
		return plan.MovePhase(status, api.PhaseFailed)
	})
}

// find records what is to be undone. It is found once: anyone who goes on undoes that.
func (s preflight) find(ctx context.Context) error {
	found, err := s.History.Find(ctx, s.txn)
	if plan.Definite(err) {
		return ending(s).fail(ctx, plan.CauseOf(err))
	}
	if err != nil {
		return err
	}
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		s.accept(status)
		status.Undoing = &found
		return plan.MovePhase(status, plan.OrPending(status.Phase))
	})
}
