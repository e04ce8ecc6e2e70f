package engine

import (
	"context"
	"fmt"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// stop leaves a rollback where it is, because the Transaction is suspended, or because
// spec.cancel is Stop; or a single item, because what depends on it stays in effect.
type stop struct{ *saga }

// skipUndo parks item i, whose compensation this process or another may have begun, if none of
// it is in effect, nor can come to be. One that was made in part is finished.
func (s stop) skipUndo(ctx context.Context, i int) error {
	if _, ok := s.memory.Undone(i); ok {
		return rollback(s).undo(ctx, []int{i})
	}
	if !s.memory.Wrote() {
		if err := s.waitForOthers(ctx); err != nil {
			return err
		}
	}
	observe, err := s.observer(i, api.ItemRollingBack, nil)
	if err != nil {
		return err
	}
	finding, err := observe(ctx)
	if err == nil && plan.InEffect(finding) && !s.flight.Known[i].NoEffect() {
		if s.settleTime(i) > 0 {
			return s.keepUntilSettled(ctx, i)
		}
		finding, err = observe(ctx) // One answer may be of before the compensation.
	}
	switch {
	case err != nil:
		// To undo it would meet the same error, or undo it, should it have gone meanwhile.
		return rollback(s).giveUpIf(ctx, i, err)
	case !plan.InEffect(finding):
		return rollback(s).undo(ctx, []int{i})
	}
	s.memory.Settled(i)
	s.park(i)
	return nil
}

// park leaves item i as it is, and with it the earlier changes of its object. A recovery
// opens them all at once, and rolls them back one after the other, the latest first.
func (s stop) park(i int) {
	own := s.txn.Status.Items[i].Target.Identity()
	for j := range s.txn.Status.Items {
		item := &s.txn.Status.Items[j]
		if j == i || item.State == api.ItemRollingBack && !plan.Restoring(item) && s.flight.Known[j] != plan.Over && item.Target.Identity() == own {
			s.flight.Happened(j, plan.Left)
		}
	}
}

// waitForOthers gives what others may be about to send its time. Who recorded the intents is told
// by a checkpoint, and sends nothing more once they have seen that. There is one for each
// version of the spec: who writes the status later has read that nothing further is to be
// rolled back, and two processes that began again because of each other would never come to
// an end.
func (s stop) waitForOthers(ctx context.Context) error {
	if s.memory.ToldToStop() {
		return nil
	}
	if err := s.takeOver(ctx); err != nil {
		return err
	}
	s.memory.TellToStop()
	return nil
}

// acceptPartial records that the changes which are in effect are left so.
func (s stop) acceptPartial(ctx context.Context) error {
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		held := rollback(s).held(status.Items)
		for i := range status.Items {
			item := &status.Items[i]
			if plan.Restoring(item) {
				message := item.Target.String() + " is restored, and it was not waited for until it is ready, because spec.cancel is Stop; set it to Rollback to wait for it"
				if err := plan.LeaveNotReady(item, errclass.Cancelled, message); err != nil {
					return err
				}
				continue
			}
			unmade := item.State == api.ItemRollingBack && (s.flight.Known[i] == plan.Unsent || s.flight.Known[i].IsParked())
			if item.State != api.ItemCommitted && !unmade && !held.Freed(i) {
				continue
			}
			item.Reason, item.SetAside, item.SetAsideFor, item.BlockedBy = errclass.Cancelled, false, nil, ""
			item.Message = fmt.Sprintf("%s is left as the change made it, because spec.cancel is Stop; set it to Rollback to roll this back", item.Target.String())
			if item.State == api.ItemUnresolved {
				continue
			}
			if err := plan.MoveItem(item, api.ItemUnresolved); err != nil {
				return err
			}
		}
		return nil
	})
}
