package engine

import (
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// timeLeft is how long it is until the next time is over that ends something: that of the
// changes, of a rollback, or of what is waited for. Zero means that none runs.
func (s *saga) timeLeft() time.Duration {
	status, now := &s.txn.Status, s.clock.Now()
	var ends []time.Time
	switch {
	case status.Phase.Terminal() || status.SuspendTime != nil:
		return 0
	case status.Phase == api.PhaseRollingBack && status.RollbackStartTime != nil:
		ends = append(ends, status.RollbackStartTime.Add(plan.Timeout(s.txn)))
	case status.Phase != api.PhaseRollingBack && status.StartTime != nil:
		ends = append(ends, status.StartTime.Add(plan.Timeout(s.txn)+time.Duration(status.SuspendedSeconds)*time.Second))
	}
	for _, i := range s.awaited() {
		if left, limited := s.readyTimeLeft(i); limited {
			ends = append(ends, now.Add(left))
		}
	}
	var least time.Duration
	for _, end := range ends {
		// What is over is over after its end, not at it.
		left := end.Sub(now) + time.Millisecond
		if left <= 0 && !end.Before(s.began) {
			left = time.Millisecond // It ended during an attempt: the next one is to see that.
		}
		if left > 0 && (least == 0 || left < least) {
			least = left
		}
	}
	return least
}

// notAhead lets what would begin ahead of the clock begin now. It would have what the
// clock was ahead on top of its time otherwise.
func (s *saga) notAhead(status *api.TransactionStatus) {
	for _, t := range plan.BegunAhead(status, s.clock.Now()) {
		*t = s.now()
	}
}
