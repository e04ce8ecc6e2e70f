package engine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/engine/plan"
)

// ExpiresIn is how long a Transaction that was completed then is to stay, before it is
// looked at: the clock may have been ahead.
func (e *Engine) ExpiresIn(completion time.Time, ttl time.Duration) time.Duration {
	return min(ttl, completion.Add(ttl).Sub(e.clock.Now()))
}

// Retire has these Transactions, and none that were named before, deleted when they are
// run next, though their time after their end is not over. One that is not dispensable
// stays, and so does one that can be undone.
func (e *Engine) Retire(those map[types.UID]bool) {
	e.memories.Retire(those)
}

func (s *saga) isRetired() bool {
	return s.memory.Retired() && plan.Dispensable(s.txn) && !plan.CanBeUndone(s.txn)
}

// expire deletes a Transaction of which nothing is left to look at, when its time has
// come.
func (s *saga) expire(ctx context.Context) Result {
	retired := s.isRetired()
	if at, ok := plan.Expiry(s.txn); !retired {
		if !ok {
			return Result{}
		}
		if wait := at.Sub(s.clock.Now()); wait > 0 {
			return Result{After: wait}
		}
	}
	if err := s.Journal.Delete(ctx, s.txn); err != nil {
		return Result{Err: err}
	}
	s.Recorder.Expired(s.txn, retired)
	return Result{}
}
