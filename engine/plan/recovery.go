package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// What a rollback could not roll back is tried again some time later, if it may heal.
// What was left because the Transaction was stopped is rolled back when that is asked for.

// recoverable reports whether a failed rollback may succeed when it is tried
// again: an item is left, and not because of another client's write or a
// before-image that cannot be trusted.
func recoverable(t *api.Transaction, policy Policy) bool {
	if t.Status.Recoveries >= policy.Recoveries || t.Status.RollbackRef == nil {
		return false
	}
	for i := range t.Status.Items {
		if mayHeal(&t.Status.Items[i]) {
			return true
		}
	}
	return false
}

// hopeful lists the items that a recovery takes up: those that may heal, and those
// that may have been kept from it only by the change of such an item, later on the same
// object.
func hopeful(items []api.Item) []int {
	var out []int
	healing := map[api.Target]bool{}
	for i := len(items) - 1; i >= 0; i-- {
		key := items[i].Target.Identity()
		switch {
		case mayHeal(&items[i]), left(&items[i]):
			healing[key] = true
		case items[i].State != api.ItemUnresolved || !healing[key] || isBlocked(&items[i]):
			continue
		}
		out = append(out, i)
	}
	return out
}

func mayHeal(item *api.Item) bool {
	if item.State != api.ItemUnresolved {
		return false
	}
	switch item.Reason {
	case errclass.Drifted, errclass.FieldConflict, errclass.AlreadyExists, errclass.ControllerMade, errclass.Irreversible, errclass.OwnerGone,
		errclass.BeforeImageLost, errclass.BeforeImageTampered, errclass.Cancelled, errclass.Altered:
		return false
	case errclass.Invalid, errclass.TooLarge:
		return item.SetAside // Others have been rolled back since, which may take its time.
	case errclass.Blocked:
		return !isBlocked(item) // It is rolled back once what blocks it is.
	}
	return true
}

// takeUpAside takes up, beside the items of a recovery, those that may be possible once
// these are rolled back.
func takeUpAside(items []api.Item) error {
	for i := range items {
		item := &items[i]
		if item.State != api.ItemUnresolved || item.Unsettled || item.Reason != errclass.Invalid && item.Reason != errclass.TooLarge {
			continue
		}
		if err := MoveItem(item, api.ItemRollingBack); err != nil {
			return err
		}
		item.SetAside = true
	}
	return nil
}

// recoveryAskedFor is what the annotation asks for, if it is there, as the status keeps it.
func recoveryAskedFor(t *api.Transaction) string {
	return errclass.Cut(errclass.OneLine(t.Annotations[api.RecoverAnnotation]), 128)
}

// recoveryAsked reports whether a person asks for a failed rollback to be taken up again,
// and it has not been since.
func recoveryAsked(t *api.Transaction) bool {
	return t.Status.Phase == api.PhaseFailed && t.Status.RollbackRef != nil && !RollbackStopped(t) &&
		recoveryAskedFor(t) != "" && recoveryAskedFor(t) != t.Status.HandledRecovery && len(DescribeUnresolved(&t.Status)) > 0
}

// unresolvedOnes lists all items that could not be rolled back, whatever the reason. Those that
// are Blocked follow when nothing blocks them any more.
func unresolvedOnes(items []api.Item) []int {
	var out []int
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].State == api.ItemUnresolved && !isBlocked(&items[i]) {
			out = append(out, i)
		}
	}
	return out
}

func recoveryTime(t *api.Transaction, policy Policy) time.Time {
	delay := policy.RecoveryDelay
	for range t.Status.Recoveries {
		delay *= 4
	}
	if t.Status.CompletionTime == nil {
		return time.Time{}
	}
	return t.Status.CompletionTime.Add(delay)
}

// left reports whether a change is in effect because the Transaction was stopped.
func left(item *api.Item) bool {
	return item.State == api.ItemUnresolved && item.Reason == errclass.Cancelled
}

// wantedBack reports whether what a stopped Transaction has left is to be rolled back after
// all.
func wantedBack(t *api.Transaction) bool {
	if t.Spec.Cancel != api.CancelRollback || t.Status.Phase != api.PhaseFailed {
		return false
	}
	for i := range t.Status.Items {
		if left(&t.Status.Items[i]) {
			return true
		}
	}
	return false
}

// BeginRecovery records that the failed rollback of t is taken up again: by itself of what
// may heal, or of all that is unresolved because a person asks for it.
func BeginRecovery(t *api.Transaction, status *api.TransactionStatus, now time.Time) error {
	if reason, _ := RecordedCause(status); wantedBack(t) && reason == errclass.Cancelled {
		setCondition(status, t.Generation, now, condition{api.ConditionSucceeded, no, reason, "the Transaction was cancelled (spec.cancel: Rollback, after Stop)"})
	}
	these := hopeful(status.Items)
	if recoveryAsked(t) {
		these, status.HandledRecovery = unresolvedOnes(status.Items), recoveryAskedFor(t)
	} else {
		status.Recoveries++
	}
	began := metav1.NewTime(now).Rfc3339Copy()
	for _, i := range these {
		item, again := &status.Items[i], takeUp
		if notReady(item) {
			again = func(item *api.Item) error { return waitAgain(item, began) }
		}
		if err := again(item); err != nil {
			return err
		}
	}
	if err := takeUpAside(status.Items); err != nil {
		return err
	}
	status.CompletionTime, status.Duration, status.RollbackStartTime = nil, "", &began
	return MovePhase(status, api.PhaseRollingBack)
}
