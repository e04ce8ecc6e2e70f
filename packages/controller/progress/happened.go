package progress

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	txn "janus.io/janus/api/v1alpha1"

	api "janus.io/janus/api/packages/v1alpha1"
)

// Deleted is the outcome of a PackageTransaction that was deleted before it had ended. The other
// outcomes are the reasons that its condition Ready has then.
const Deleted = "Deleted"

// Outcomes are all of them.
var Outcomes = []string{TransactionComplete, DryRun, ValidationFailed, InstallationFailed, Deleted}

// Cancelled is the reason of the event about a PackageTransaction that is deleted while it runs.
const Cancelled = "Cancelled"

// Happening is something that has happened to a PackageTransaction, of which people are told.
type Happening struct {
	// Reason is that of the condition that says so.
	Reason string
	// Message is a sentence. It may be long, and of several lines.
	Message string
	// Warning says that it is not as it should be.
	Warning bool
	// Failed is how many attempts have failed by it.
	Failed int64
	// Outcome is how the PackageTransaction has ended; empty if it has not.
	Outcome string
}

// Unseen is the status to compare the first one with that a process sees of a PackageTransaction.
func Unseen(p *api.PackageTransaction) *api.PackageTransactionStatus {
	out := &api.PackageTransactionStatus{Failures: p.Status.Failures}
	if ref := p.Status.TransactionRef; ref != nil && ref.Name != Name(p) {
		out.TransactionRef = ref // That of an attempt that is over.
	}
	return out
}

// Happened lists what has happened between an earlier status and the one that there is now, in
// that order.
func Happened(before *api.PackageTransactionStatus, p *api.PackageTransaction) []Happening {
	var out []Happening
	after := &p.Status
	ready := condition(after, api.Ready)
	// For whom it waits after that is in its status: of many that wait each would be told of all others.
	if ready.Reason == WaitingForLock && condition(before, api.Ready).Reason != WaitingForLock {
		out = append(out, Happening{Reason: WaitingForLock, Message: ready.Message})
	}
	if passed(before, after) {
		out = append(out, Happening{Reason: AllValidationsPassed, Message: condition(after, api.Validated).Message})
	}
	if ref, last := after.TransactionRef, before.TransactionRef; ref != nil && (last == nil || last.Name != ref.Name) {
		out = append(out, Happening{Reason: InstallationInProgress, Message: fmt.Sprintf("attempt %d: Transaction %s/%s makes the change", before.Failures+1, ref.Namespace, ref.Name)})
	}
	failed := after.Failures - before.Failures
	switch {
	case after.CompletionTime != nil && before.CompletionTime == nil:
		out = append(out, Happening{
			Reason: why(after, ready), Message: ready.Message, Warning: ready.Status != metav1.ConditionTrue, Failed: failed, Outcome: ready.Reason,
		})
	case after.RetryTime != nil && (failed > 0 || !after.RetryTime.Equal(before.RetryTime)):
		out = append(out, Happening{Reason: why(after, ready), Message: ready.Message, Warning: true, Failed: failed})
	}
	return out
}

// Aborted is what happens to a PackageTransaction that is deleted before it has ended. t is the
// Transaction that is rolled back for that; nil if there is none.
func Aborted(t *txn.Transaction) Happening {
	message := "deleted before it had ended"
	if t != nil {
		message += ": Transaction " + t.Namespace + "/" + t.Name + " is rolled back"
	}
	return Happening{Reason: Cancelled, Message: message, Warning: true, Outcome: Deleted}
}

// passed reports whether the checks of an attempt have passed. Those of a further attempt change
// nothing but the time of the attempt.
func passed(before, after *api.PackageTransactionStatus) bool {
	if condition(after, api.Validated).Status != metav1.ConditionTrue || condition(after, api.Installed).Reason == InstallationFailed {
		return false
	}
	return condition(before, api.Validated).Status != metav1.ConditionTrue || before.RetryTime != nil && after.RetryTime == nil
}

// why is the reason of the condition that says what has come of an attempt.
func why(s *api.PackageTransactionStatus, ready metav1.Condition) string {
	if validated := condition(s, api.Validated); validated.Status == metav1.ConditionFalse {
		return validated.Reason
	}
	if ready.Reason == TransactionInProgress {
		return condition(s, api.Installed).Reason
	}
	return ready.Reason
}

func condition(s *api.PackageTransactionStatus, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(s.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}
