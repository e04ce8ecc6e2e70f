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
		if limited && left <= 0 || s.txn.Status.Items[i].HoldStartTime != nil {
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
	wait, now := min(maxToldInterval, plan.LockTimeout(s.txn)/4), s.clock.Now()
	for _, i := range items {
		if left, limited := readyTimeLeft(s.txn, i, now); limited {
			wait = min(wait, left)
		}
		if s.txn.Status.Items[i].HoldStartTime != nil {
			wait = min(wait, plan.HoldLeft(s.txn, i, now)+time.Millisecond)
		}
	}
	return wait
}

// awaited lists the items that are waited for while changes are made. While the
// Transaction is suspended, or when it is deleted, none is.
func awaited(t *api.Transaction) []int {
	if t.Status.Phase != api.PhaseCommitting || plan.Suspended(t) || t.DeletionTimestamp != nil {
		return nil
	}
	return plan.Waiting(t.Status.Items)
}

// readyTimeLeft is how much longer item i may take to be ready, if that is limited. Its
// time is kept by the second.
func readyTimeLeft(t *api.Transaction, i int, now time.Time) (time.Duration, bool) {
	if i >= len(t.Spec.Changes) {
		return 0, false // Another client has cut the spec short.
	}
	limit := plan.ReadyTimeout(t.Spec.Changes[i])
	if limit == nil {
		return 0, false
	}
	end := t.Status.Items[i].WaitStartTime.Add(time.Second + plan.Duration(limit, plan.DefaultTimeout))
	return end.Sub(now), true
}
