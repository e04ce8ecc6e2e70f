package engine

import (
	"context"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

// rollback undoes the changes, in reverse order.
type rollback struct{ *saga }

// settle finds out what became of an intent that was open when the rollback
// began. A request that its sender has given up on may still land, and a change
// that lands after its item was written off would outlive the rollback. So "not
// applied" is believed only after the settle time.
func (s rollback) settle(ctx context.Context, i int) error {
	observe, err := s.observer(i, api.ItemCommitting, nil)
	if err != nil {
		return err
	}
	finding, err := observe(ctx)
	if err == nil && finding == outcome.NotApplied {
		if wait := s.settleTime(i); wait > 0 {
			return s.keepUntilSettled(ctx, i)
		}
		// One answer may be of before the change, and nobody would look again.
		finding, err = observe(ctx)
	}
	if err != nil {
		return s.giveUpIf(ctx, i, err, func(item *api.Item) { item.Unsettled = true })
	}
	switch finding {
	case outcome.Applied, outcome.Applying:
		s.memory.Settled(i)
		return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
			return plan.MoveItem(&status.Items[i], api.ItemCommitted)
		})
	case outcome.Diverged:
		s.memory.Settled(i)
		return s.giveUp(ctx, i, plan.Diverged(s.txn, i))
	}
	s.memory.Settled(i)
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		return plan.MoveItem(&status.Items[i], api.ItemRejected)
	})
}

// undo rolls items back, and sets aside, or gives up on, those that are refused. The first error that
// may heal is returned.
func (s rollback) undo(ctx context.Context, these []int) error {
	all, err := s.undoItems(ctx, these...)
	for _, r := range all {
		switch failed := s.meet(ctx, r); {
		case isJournal(failed):
			return failed
		case failed != nil:
			err = bothPending(err, failed)
		}
	}
	return err
}

// meet deals with a refusal.
func (s rollback) meet(ctx context.Context, r refused) error {
	if s.mayBeRetriedLater(r.item, r.why) {
		return s.setAside(ctx, r)
	}
	return s.giveUpIf(ctx, r.item, r.why, func(item *api.Item) { plan.ReportBeside(item, r.undone, s.share()) })
}

// leaveNotReady records that item i is restored and does not become ready, and goes on to the
// next.
func (s rollback) leaveNotReady(ctx context.Context, i int, cause plan.Cause) error {
	return s.record(ctx, func(status *api.TransactionStatus) error {
		if status.FailedItem == "" {
			status.FailedItem = status.Items[i].Name
		}
		message := "restored, but not ready since: " + cause.Message
		if cause.Reason == errclass.ReadyTimeout || cause.Reason == errclass.DeadlineExceeded {
			message = "restored, but " + cause.Message
		}
		noteResult(&status.Items[i], cause)
		return plan.LeaveNotReady(&status.Items[i], errclass.RollbackNotReady, message)
	})
}

// recover takes up a failed rollback once more. Of a compensation that was given up on because the rollback
// had had its time, a request may be under way: an object is not created again before that has landed or
// not. For how long it was under way another machine's clock would have to tell.
func (s rollback) recover(ctx context.Context) error {
	if !plan.HasFinalizer(s.txn) {
		if err := s.addFinalizer(ctx); err != nil {
			return err
		}
	}
	before := s.txn.Status.Items
	err := s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		return plan.BeginRecovery(s.txn, status, s.clock.Now())
	})
	if err != nil {
		return err
	}
	for i := range s.flight.Known {
		if before[i].Reason == errclass.DeadlineExceeded && s.txn.Status.Items[i].State == api.ItemRollingBack {
			s.unsure(i)
		}
	}
	return nil
}
