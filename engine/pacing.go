package engine

import (
	"context"
	"time"

	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// paceTime is how much longer to wait before the next change is begun. A process that has
// begun none waits for a whole turn: another may have just begun one.
func (s *saga) paceTime() time.Duration { return plan.Spacing(s.txn) - s.memory.SinceBegun() }

// await keeps the locks until it is the next change's turn. Those that were begun and are
// not done are looked at meanwhile, before anything else is.
func (s *saga) await(ctx context.Context, left time.Duration) error {
	again := min(left, plan.LockTimeout(s.txn)/4)
	if items := plan.Waiting(s.txn.Status.Items); len(items) > 0 {
		again = min(again, s.lookAgain(items))
	} else if err := s.keep(ctx); err != nil {
		return s.turnOr(ctx, plan.ScheduleOf(s.txn).Next(s.txn.Status.Items), err)
	}
	wait := errclass.New(errclass.Retryable, plan.Paced, "begin", "the next change", "it waits for its turn, because spec.changesPerMinute is %d", *s.txn.Spec.ChangesPerMinute)
	wait.RetryAfter = again
	return wait
}
