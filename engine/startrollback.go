package engine

import (
	"context"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// Every phase that makes changes ends here when one cannot be made.

// startRollbackIf starts rolling back because of item i on an error that will not heal, and
// returns any other.
func (s *saga) startRollbackIf(ctx context.Context, i int, err error) error {
	if plan.Definite(err) && !isJournal(err) {
		return s.startRollback(ctx, plan.ItemCause(s.txn, i, err))
	}
	return err
}

// startRollback stops committing and starts rolling back.
func (s *saga) startRollback(ctx context.Context, cause plan.Cause) error {
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		if i := plan.IndexOf(status.Items, cause.Item); i >= 0 {
			status.Items[i].Reason, status.Items[i].Message = cause.Reason, cause.Message
			noteResult(&status.Items[i], cause)
		}
		return s.recordRollback(status, cause)
	})
}

// noteResult records the condition that is the cause, if one is.
func noteResult(item *api.Item, cause plan.Cause) {
	if r := cause.Result; r != nil {
		plan.NoteResult(item, r.Condition, r.Holds, r.Time, r.Message)
	}
}

// recordRollback writes into the status that the rollback starts. The intents of changes for
// which nothing was sent are withdrawn.
func (s *saga) recordRollback(status *api.TransactionStatus, cause plan.Cause) error {
	if err := s.flight.Withdraw(status, api.ItemCommitting, api.ItemPrepared); err != nil {
		return err
	}
	if err := plan.EndAwaits(status.Items); err != nil {
		return err
	}
	plan.ReplaceCause(status, s.txn.Generation, s.clock.Now(), cause)
	status.RollbackStartTime = s.now()
	return plan.MovePhase(status, api.PhaseRollingBack)
}
