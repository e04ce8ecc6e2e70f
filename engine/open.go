package engine

import (
	"context"
	"slices"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// A checkpoint also opens the intents of the next items, as far as their before-images are
// saved and nothing has to be written in between. That is what makes the price of many items
// one status write.

// record writes a checkpoint that also opens the intents of the next items, unless they
// have to wait for their turn.
func (s *saga) record(ctx context.Context, change func(*api.TransactionStatus) error) error {
	if plan.Spacing(s.txn) > 0 && s.txn.Status.Phase != api.PhaseRollingBack {
		return s.checkpoint(ctx, change)
	}
	return s.recordOpening(ctx, change)
}

// recordAndOpen records what is over, and opens what comes next.
func (s *saga) recordAndOpen(ctx context.Context) error {
	return s.record(ctx, func(*api.TransactionStatus) error { return nil })
}

// recordOpening writes a checkpoint that also opens the intents of the next items. It does not
// open the first of all where guards are to be judged before that.
func (s *saga) recordOpening(ctx context.Context, change func(*api.TransactionStatus) error) error {
	return s.recordAndOpenBy(ctx, change, func(status *api.TransactionStatus) error {
		if plan.GuardsFirst(status.Items) {
			return nil
		}
		return openChanges(s.txn, status, s.policy.Window)
	})
}

// openNext records the intents of the next items, now that guards were judged.
func (s *saga) openNext(ctx context.Context) error {
	return s.recordAndOpenBy(ctx, func(*api.TransactionStatus) error { return nil }, func(status *api.TransactionStatus) error {
		return openChanges(s.txn, status, s.policy.Window)
	})
}

func (s *saga) recordAndOpenBy(ctx context.Context, change, open func(*api.TransactionStatus) error) error {
	err := s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		if err := change(status); err != nil {
			return err
		}
		if plan.Suspended(s.txn) {
			return nil
		}
		switch status.Phase {
		case api.PhaseRollingBack:
			return openUndos(s.txn, status, s.policy.Window)
		case api.PhaseCommitting:
			return open(status)
		default:
			return nil
		}
	})
	if err == nil && plan.Spacing(s.txn) > 0 && s.flight.Known.Any(plan.Unsent) {
		s.memory.Begun()
	}
	return err
}

// openChanges records the intents of the next changes.
func openChanges(t *api.Transaction, status *api.TransactionStatus, most int) error {
	if plan.Spacing(t) > 0 {
		most = 1
	}
	next := *t // What is recorded with it may have changed the order.
	next.Status.Items = status.Items
	for _, i := range plan.ScheduleOf(&next).Window(&next, most) {
		if err := plan.MoveItem(&status.Items[i], api.ItemCommitting); err != nil {
			return err
		}
	}
	return nil
}

// openUndos records the intents of the next compensations: of an object one, none of what is
// depended on by what is not on record as rolled back, and none of what comes after one that is
// waited for.
func openUndos(t *api.Transaction, status *api.TransactionStatus, most int) error {
	if t.Spec.Cancel == api.CancelStop {
		return nil
	}
	open, schedule := map[api.Target]bool{}, plan.ScheduleOf(t)
	held, behind := plan.HeldOf(t, status.Items, func(int) bool { return false }), plan.BehindOf(t, schedule)
	for _, i := range slices.Backward(schedule.Order) {
		item := &status.Items[i]
		// One that was refused is tried again after the others.
		if item.State == api.ItemRollingBack && plan.RestoredWhen(t, i) && (plan.Restoring(item) || !held.Skips(i)) {
			behind.Add(i)
		}
		switch {
		case plan.Restoring(item), held.Skips(i), behind.Holds(i) && item.State != api.ItemRollingBack:
			continue
		case item.State == api.ItemCommitting:
			return nil
		case item.State == api.ItemRollingBack:
			open[item.Target.Identity()] = true
		case item.State == api.ItemCommitted, held.Freed(i):
			if open[item.Target.Identity()] || len(open) >= most || held.Needed(i) {
				return nil
			}
			open[item.Target.Identity()] = true
			if err := plan.BeginUndo(item); err != nil {
				return err
			}
			if plan.RestoredWhen(t, i) {
				behind.Add(i)
			}
		}
	}
	return nil
}
