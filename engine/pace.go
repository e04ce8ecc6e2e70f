package engine

import (
	"context"
	"time"

	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// pace spreads the beginnings of changes over time, by spec.changesPerMinute.
type pace struct{ *saga }

// turn reports whether it is the next change's turn. Before that the locks are kept; err
// is then the wait.
func (s pace) turn(ctx context.Context) (come bool, err error) {
	spacing := plan.Spacing(s.txn)
	if spacing <= 0 {
		return true, nil
	}
	left := spacing - s.memory.SinceBegun()
	if left <= 0 {
		return true, nil
	}
	return false, s.await(ctx, left)
}

// await keeps the locks until it is the next change's turn. Those that were begun and are
// not done are looked at meanwhile, before anything else is.
func (s pace) await(ctx context.Context, left time.Duration) error {
	again := min(left, plan.LockTimeout(s.txn)/4)
	if items := plan.Waiting(s.txn.Status.Items); len(items) > 0 {
		again = min(again, s.pollTime(items))
	} else if _, err := s.keepLocks(ctx); err != nil {
		return s.stopMakingIf(ctx, plan.ScheduleOf(s.txn).Next(s.txn.Status.Items), err)
	}
	wait := errclass.New(errclass.Retryable, plan.Paced, "begin", "the next change", "it waits for its turn, because spec.changesPerMinute is %d", *s.txn.Spec.ChangesPerMinute)
	wait.RetryAfter = again
	return wait
}
