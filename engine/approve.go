package engine

import (
	"context"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// approving is of a Transaction whose plan stands until someone approves it. It holds nothing
// but its finalizer meanwhile.
type approving struct{ *saga }

// approve records the approval of the plan. If it can't be believed, the Transaction ends: what
// stands there may be anyone's word.
func (s approving) approve(ctx context.Context) error {
	err := s.Approvals.Guarded(ctx, s.txn)
	if plan.Definite(err) {
		return ending(s).fail(ctx, plan.CauseOf(err))
	}
	if err != nil {
		return err
	}
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		plan.Accept(s.txn, status, *s.now())
		return plan.MovePhase(status, api.PhasePreparing)
	})
}

// standAgain gives back what was taken on an approval that does not count any more. That it
// does not is on record, so nobody relies on it.
func (s approving) standAgain(ctx context.Context) error {
	if err := cleanup(s).release(ctx, false); err != nil {
		return err
	}
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		return plan.MovePhase(status, api.PhasePending)
	})
}
