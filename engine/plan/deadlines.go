package plan

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
func Timeout(t *api.Transaction) time.Duration { return Duration(t.Spec.Timeout, DefaultTimeout) }

// LockTimeout is how long a lock outlives the last sign of life of its holder.
func LockTimeout(t *api.Transaction) time.Duration {
	return Duration(t.Spec.LockTimeout, DefaultLockTimeout)
}

// Duration reads a duration that validation has accepted; the API server lets no
// other in, and one that got in all the same means the default.
func Duration(d *api.Duration, def time.Duration) time.Duration {
	if d == nil {
		return def
	}
	parsed, err := time.ParseDuration(string(*d))
	if err != nil || parsed <= 0 {
		return def
	}
	return parsed
}

// Overdue reports whether the changes have had their time, in which it was not suspended and no plan
// stood.
func Overdue(t *api.Transaction, now time.Time) bool {
	if t.Status.StartTime == nil {
		return false
	}
	switch {
	case Standing(t):
		now = t.Status.Approval.RequestTime.Time
	case t.Status.SuspendTime != nil:
		now = t.Status.SuspendTime.Time
	}
	return now.After(Deadline(t))
}

// Deadline is when the changes have had their time. That in which the Transaction was
// suspended, or waited for approval, does not count.
func Deadline(t *api.Transaction) time.Time {
	still := t.Status.SuspendedSeconds
	if t.Status.Approval != nil {
		still += t.Status.Approval.WaitedSeconds
	}
	return t.Status.StartTime.Add(Timeout(t) + time.Duration(still)*time.Second)
}

// endedLater reports whether the clock was ahead when a Transaction ended, of which the time
// after its end counts.
func endedLater(t *api.Transaction, now time.Time, policy Policy) bool {
	counts := t.Spec.TTLSecondsAfterFinished != nil || t.Status.Phase == api.PhaseFailed && recoverable(t, policy)
	return counts && t.Status.CompletionTime != nil && t.Status.CompletionTime.After(now)
}

// BegunAhead are the beginnings of what has its time that lie ahead of now: the clock was
// ahead when they were recorded, and has been set back, or was another one.
func BegunAhead(status *api.TransactionStatus, now time.Time) []**metav1.Time {
	begun := []**metav1.Time{&status.StartTime, &status.RollbackStartTime, &status.CompletionTime}
	if status.Approval != nil {
		begun = append(begun, &status.Approval.RequestTime)
	}
	for i := range status.Items {
		begun = append(begun, &status.Items[i].WaitStartTime, &status.Items[i].HoldStartTime)
		if w := status.Items[i].RollbackWait; w != nil {
			begun = append(begun, &w.StartTime, &w.HoldStartTime)
		}
	}
	return slices.DeleteFunc(begun, func(t **metav1.Time) bool { return *t == nil || !(*t).After(now) })
}
