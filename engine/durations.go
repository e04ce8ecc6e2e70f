package engine

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
)

// Defaults for durations that a Transaction leaves out, as in the CRD.
const (
	DefaultTimeout     = 30 * time.Minute
	DefaultLockTimeout = 5 * time.Minute
)

// Timeout is how long the changes may take in all.
func Timeout(t *api.Transaction) time.Duration { return duration(t.Spec.Timeout, DefaultTimeout) }

// LockTimeout is how long a lock outlives the last sign of life of its holder.
func LockTimeout(t *api.Transaction) time.Duration {
	return duration(t.Spec.LockTimeout, DefaultLockTimeout)
}

// duration reads a duration that validation has accepted; the API server lets no
// other in, and one that got in all the same means the default.
func duration(d *api.Duration, def time.Duration) time.Duration {
	if d == nil {
		return def
	}
	parsed, err := time.ParseDuration(string(*d))
	if err != nil || parsed <= 0 {
		return def
	}
	return parsed
}

// overdue reports whether the changes have had their time, in which it was not suspended.
func overdue(t *api.Transaction, now time.Time) bool {
	if t.Status.StartTime == nil {
		return false
	}
	suspended := time.Duration(t.Status.SuspendedSeconds) * time.Second
	if t.Status.SuspendTime != nil {
		now = t.Status.SuspendTime.Time
	}
	return now.After(t.Status.StartTime.Add(Timeout(t) + suspended))
}

// timeLeft is how long it is until the next time is over that ends something: that of the
// changes, of a rollback, or of what is waited for. Zero means that none runs.
func (s *saga) timeLeft() time.Duration {
	status, now := &s.txn.Status, s.clock.Now()
	var ends []time.Time
	switch {
	case status.Phase.Terminal() || status.SuspendTime != nil:
		return 0
	case status.Phase == api.PhaseRollingBack && status.RollbackStartTime != nil:
		ends = append(ends, status.RollbackStartTime.Add(Timeout(s.txn)))
	case status.Phase != api.PhaseRollingBack && status.StartTime != nil:
		ends = append(ends, status.StartTime.Add(Timeout(s.txn)+time.Duration(status.SuspendedSeconds)*time.Second))
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

// endedLater reports whether the clock was ahead when a Transaction ended, of which the time
// after its end counts.
func endedLater(t *api.Transaction, now time.Time, policy Policy) bool {
	counts := t.Spec.TTLSecondsAfterFinished != nil || t.Status.Phase == api.PhaseFailed && recoverable(t, policy)
	return counts && t.Status.CompletionTime != nil && t.Status.CompletionTime.After(now)
}

// begunLater are the beginnings of what has its time that lie ahead of now: the clock was
// ahead when they were recorded, and has been set back, or was another one.
func begunLater(status *api.TransactionStatus, now time.Time) []**metav1.Time {
	begun := []**metav1.Time{&status.StartTime, &status.RollbackStartTime, &status.CompletionTime}
	for i := range status.Items {
		begun = append(begun, &status.Items[i].WaitStartTime)
	}
	return slices.DeleteFunc(begun, func(t **metav1.Time) bool { return *t == nil || !(*t).After(now) })
}

// notAhead lets what would begin ahead of the clock begin now. It would have what the
// clock was ahead on top of its time otherwise.
func (s *saga) notAhead(status *api.TransactionStatus) {
	for _, t := range begunLater(status, s.clock.Now()) {
		*t = s.now()
	}
}
