package engine

import (
	"context"

	"janus.io/janus/engine/plan"
)

// expire deletes a Transaction of which nothing is left to look at, when its time has
// come.
func expire(ctx context.Context, s *saga) Result {
	retired := s.memory.Retired() && plan.Dispensable(s.txn) && !plan.CanBeUndone(s.txn)
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
