package engine

import (
	"context"
	"slices"
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// The way back may lead through what an earlier change has made impossible: a schema, a
// policy or a quota that it made stricter, a role that it took away. The refusal of such an
// item is no last word before the earlier changes are rolled back as well. The item is set
// aside, which is on record, and tried again when all others are rolled back, for as long as
// that makes progress.

// mayBeRetriedLater reports whether item i, which was refused, is to be tried again when others
// are rolled back, or after a while. A rollback that is to stand still has no others.
func (s rollback) mayBeRetriedLater(i int, refusal error) bool {
	return plan.Curable(refusal) && !plan.RollbackStopped(s.txn) && (s.untilCounted(i, refusal) > 0 || othersOpen(s.txn, s.flight.Known, i))
}

// setAside records that an item was refused, and goes on with the others.
func (s rollback) setAside(ctx context.Context, r refused) error {
	return s.record(ctx, func(status *api.TransactionStatus) error {
		item := &status.Items[r.item]
		plan.ReportBeside(item, r.undone, s.share())
		s.recordReason(item, r.item, r.why)
		when := "when the other changes are rolled back"
		if !othersOpen(s.txn, s.flight.Known, r.item) {
			when = "for a while"
		}
		item.Message = errclass.Printable("refused, and tried again " + when + ": " + item.Message)
		plan.SetAside(s.txn, item, r.item, r.why)
		return nil
	})
}

// held are the items that are not rolled back for the sake of others.
func (s rollback) held(items []api.Item) plan.Held {
	return plan.HeldOf(s.txn, items, func(i int) bool { return s.flight.Known[i] == plan.Over })
}

// leave records that items stay in effect because others do that depend on them, and goes on
// with the rest.
func (s rollback) leave(ctx context.Context, items []int) error {
	held := s.held(s.txn.Status.Items)
	return s.record(ctx, func(status *api.TransactionStatus) error { return held.Leave(status.Items, items) })
}

// retrySetAside rolls back what was set aside, the last first. One that is rolled back may be
// what another needs: it begins again then. When all are refused it gives up on all, unless
// something was rolled back so lately that it may not have taken effect everywhere.
func (s rollback) retrySetAside(ctx context.Context) error {
	var all []refused
	var wait error
	held := s.held(s.txn.Status.Items)
	for _, i := range slices.Backward(plan.ScheduleOf(s.txn).Order) {
		if !held.Retried(i) {
			continue
		}
		r, err := s.undoItem(ctx, i)
		switch {
		case isJournal(err):
			return err
		case err == nil && r.why == nil:
			return nil
		case err == nil && plan.Definite(r.why) && plan.Curable(r.why):
			all = append(all, r)
			continue
		case err == nil:
			if err = s.giveUpIf(ctx, i, r.why, func(item *api.Item) { plan.ReportBeside(item, r.undone, s.share()) }); err == nil || isJournal(err) {
				return err
			}
		}
		if wait == nil {
			wait = err
		}
	}
	if wait != nil {
		return wait
	}
	if after := s.catchingUp(); after > 0 {
		return plan.NotYet(all[0].why, after, "what was rolled back may not be in effect everywhere yet")
	}
	for _, r := range all {
		if after := s.untilCounted(r.item, r.why); after > 0 {
			return plan.NotYet(r.why, after, "")
		}
	}
	return s.giveUpAll(ctx, all)
}

// catchUpInterval is how soon after a refusal that may be outdated it is tried again, at
// first. Later it is as long as has been waited already.
const catchUpInterval = 250 * time.Millisecond

// catchingUp is how long to wait because an item was rolled back so lately that what it makes
// possible may be refused still; zero if none was.
func (s rollback) catchingUp() time.Duration {
	if !slices.ContainsFunc(s.txn.Status.Items, func(item api.Item) bool { return item.Restored() }) {
		return 0
	}
	since := s.memory.SinceRestored()
	if since >= s.policy.CatchUp {
		return 0
	}
	return max(catchUpInterval, since)
}

// lateInterval is the longest pause between two attempts while the control plane may still count or
// hold what was deleted.
const lateInterval = 5 * time.Second

// untilCounted is how long to wait because item i may be refused only for what was deleted and the
// control plane still counts or holds; zero if it has been waited for long enough.
func (s rollback) untilCounted(i int, refusal error) time.Duration {
	limit := s.policy.CountedLate(refusal)
	if limit == 0 || plan.RollbackOverdue(s.txn, s.clock.Now()) {
		return 0
	}
	since := s.memory.SinceRefused(i)
	if since >= limit {
		return 0
	}
	return min(max(catchUpInterval, since), lateInterval)
}

// giveUpAll records that items cannot be rolled back, once no compensation that was sent
// before can still land.
func (s rollback) giveUpAll(ctx context.Context, all []refused) error {
	for _, r := range all {
		if !s.flight.Known[r.item].NoEffect() && s.settleTime(r.item) > 0 {
			return s.unsettled(r.item)
		}
	}
	for _, r := range all {
		s.memory.Settled(r.item)
	}
	return s.record(ctx, func(status *api.TransactionStatus) error {
		for _, r := range all {
			if err := s.recordUnresolved(status, r.item, r.why, func(item *api.Item) { plan.ReportBeside(item, r.undone, s.share()) }); err != nil {
				return err
			}
		}
		return nil
	})
}
