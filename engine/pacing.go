package engine

import (
	"context"
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// paced is the reason of the wait for the turn of the next change.
const paced = "Paced"

// spacing is the time from the beginning of one change to that of the next; zero if there
// is none to keep.
func spacing(t *api.Transaction) time.Duration {
	if n := t.Spec.ChangesPerMinute; n != nil && *n > 0 {
		return time.Minute / time.Duration(*n)
	}
	return 0
}

// paceTime is how much longer to wait before the next change is begun. A process that has
// begun none waits for a whole turn: another may have just begun one.
func (s *saga) paceTime() (left time.Duration) {
	now := s.clock.Now()
	s.know(func(m *memory) {
		if m.begun.IsZero() || now.Before(m.begun) {
			m.begun = now
		}
		left = spacing(s.txn) - now.Sub(m.begun)
	})
	return left
}

// InTime refuses a Transaction whose changes cannot all be begun within its timeout, as
// spec.changesPerMinute spaces them. Those that may turn out not to be wanted do not count.
func InTime(t *api.Transaction) error {
	n := 0
	for i, change := range t.Spec.Changes {
		if change.When == "" && t.Status.Items[i].State != api.ItemSkipped {
			n++
		}
	}
	takes := time.Duration(n-1) * spacing(t)
	if n < 2 || takes < Timeout(t) {
		return nil
	}
	return errclass.New(errclass.Terminal, errclass.Invalid, "validate", "the changes",
		"to begin %d of them takes %s at %d a minute, and spec.timeout is %s", n, takes, *t.Spec.ChangesPerMinute, Timeout(t)).
		WithHint("raise timeout or changesPerMinute, or split the Transaction")
}

// await keeps the locks until it is the next change's turn. Those that were begun and are
// not done are looked at meanwhile, before anything else is.
func (s *saga) await(ctx context.Context, left time.Duration) error {
	again := min(left, LockTimeout(s.txn)/4)
	if items := waiting(s.txn.Status.Items); len(items) > 0 {
		again = min(again, s.lookAgain(items))
	} else if err := s.keep(ctx); err != nil {
		return s.turnOr(ctx, scheduleOf(s.txn).next(s.txn.Status.Items), err)
	}
	wait := errclass.New(errclass.Retryable, paced, "begin", "the next change", "it waits for its turn, because spec.changesPerMinute is %d", *s.txn.Spec.ChangesPerMinute)
	wait.RetryAfter = again
	return wait
}
