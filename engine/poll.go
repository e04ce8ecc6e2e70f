package engine

import (
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// A lock, a finalizer or a kind that is not served yet is looked at again every second
// at first. Later that is done less often: what has taken a while may take another.
const (
	pollInterval    = time.Second
	maxPollInterval = 10 * time.Second
)

// pollTime is how long to wait before what holds the Transaction up is looked at again:
// an eighth of the time that it has waited already. Locks that it keeps meanwhile must
// not expire. Nor is the end missed of what the items have for being ready.
func (s *saga) pollTime(items []int) time.Duration {
	wait := max(pollInterval, min(s.memory.Waiting()/8, maxPollInterval, plan.LockTimeout(s.txn)/4))
	for _, i := range items {
		left, limited := readyTimeLeft(s.txn, i, s.clock.Now())
		if limited && left > 0 {
			wait = min(wait, left)
		}
		// What is done now comes before its end; what has to hold is looked at all the time.
		if limited && left <= 0 || *plan.TimesOf(&s.txn.Status.Items[i]).Hold != nil {
			wait = min(wait, pollInterval)
		}
	}
	return wait
}

// maxToldInterval is how long it is until what holds the Transaction up is looked at again, although
// nothing was told of it.
const maxToldInterval = 5 * time.Minute

// toldTime is pollTime for who is told of what happens to that. Only time is left to be waited for:
// that of locks which must be renewed, and that of items.
func (s *saga) toldTime(items []int) time.Duration {
	wait, now := maxToldInterval, s.clock.Now()
	if plan.KeepsLocks(s.txn) {
		wait = min(wait, plan.LockTimeout(s.txn)/4)
	}
	for _, i := range items {
		if left, limited := readyTimeLeft(s.txn, i, now); limited {
			wait = min(wait, left)
		}
		if *plan.TimesOf(&s.txn.Status.Items[i]).Hold != nil {
			wait = min(wait, plan.HoldLeft(s.txn, i, now)+time.Millisecond)
		}
	}
	return wait
}

// awaited lists the items that are waited for. While the Transaction is suspended, or stopped
// while it rolls back, none is; nor when it is deleted while changes are made.
func awaited(t *api.Transaction) []int {
	back := t.Status.Phase == api.PhaseRollingBack
	if plan.Suspended(t) || !back && t.DeletionTimestamp != nil || back && plan.RollbackStopped(t) {
		return nil
	}
	return plan.Awaited(t)
}

// readyTimeLeft is how much longer item i may take to be ready, if that is limited. Its
// time is kept by the second.
func readyTimeLeft(t *api.Transaction, i int, now time.Time) (time.Duration, bool) {
	limit, start := plan.ReadyTimeout(t, i), *plan.TimesOf(&t.Status.Items[i]).Start
	if limit == nil || start == nil {
		return 0, false
	}
	end := start.Add(time.Second + plan.Duration(limit, plan.DefaultTimeout))
	return end.Sub(now), true
}
