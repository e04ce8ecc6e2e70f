package plan

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Cause is why a Transaction does not commit.
type Cause struct {
	Reason, Message string
	// Item is the name of the item that failed; empty when it is about none.
	Item string
	// Result is the condition that was found to be so; nil if it is none.
	Result *api.ConditionResult
}

// Definite reports an error after which nothing took effect and trying again
// will not help.
func Definite(err error) bool {
	if err == nil {
		return false
	}
	class := errclass.ClassOf(err)
	return class == errclass.Terminal || class == errclass.Conflict
}

// CauseOf is the cause that an error gives.
func CauseOf(err error) Cause {
	return Cause{Reason: errclass.ReasonOf(err), Message: errclass.Message(err)}
}

// ItemCause is the cause that an error of item i gives.
func ItemCause(t *api.Transaction, i int, err error) Cause {
	cause := CauseOf(err)
	cause.Item = t.Status.Items[i].Name
	return cause
}

// ItemCauseOf is the cause that an error gives which was met while something was done about item i.
// Its message names the target: the error may be about a record that Janus keeps of it.
func ItemCauseOf(t *api.Transaction, i int, doing string, err error) Cause {
	cause, of := ItemCause(t, i, err), t.Status.Items[i].Target
	if !strings.Contains(cause.Message, of.Name) {
		cause.Message = doing + " " + of.String() + ": " + cause.Message
	}
	return cause
}

// Diverged is the conflict of an item whose target is neither as it was nor as its change would
// leave it.
func Diverged(t *api.Transaction, i int) error {
	target := t.Status.Items[i].Target
	return errclass.New(errclass.Conflict, errclass.Drifted, "observe", target.String(),
		"it is neither as it was nor as the change would leave it: another client has written it").
		WithHint("their version is kept; compare it with the before-image and correct it by hand")
}

// Settling is the reason of the wait for a request to land or not.
const Settling = "Settling"

// Unsettled is the wait for a request to land or not.
func Unsettled(what string) error {
	return errclass.New(errclass.Retryable, Settling, "settle", what, "waiting until a request sent before cannot take effect any more")
}

// SetCause records why the Transaction does not commit; the first cause stays.
func SetCause(status *api.TransactionStatus, generation int64, now time.Time, cause Cause) {
	if reason, _ := RecordedCause(status); reason != "" {
		return
	}
	ReplaceCause(status, generation, now, cause)
}

// ReplaceCause records why the Transaction does not commit, and not what has failed before without
// stopping it. The first item that failed stays.
func ReplaceCause(status *api.TransactionStatus, generation int64, now time.Time, cause Cause) {
	if status.FailedItem == "" {
		status.FailedItem = cause.Item
	}
	message := cause.Message
	if cause.Item != "" {
		message = "item " + cause.Item + ": " + message
	}
	setCondition(status, generation, now, condition{api.ConditionSucceeded, no, cause.Reason, errclass.Printable(message)})
}

// RecordedCause returns why the Transaction does not commit, as it is on record; an empty reason if
// nothing is.
func RecordedCause(status *api.TransactionStatus) (reason, message string) {
	c := meta.FindStatusCondition(status.Conditions, api.ConditionSucceeded)
	if c == nil || c.Status != metav1.ConditionFalse {
		return "", ""
	}
	return c.Reason, c.Message
}

// ForgetCause removes what RecordedCause returns.
func ForgetCause(status *api.TransactionStatus) {
	if reason, _ := RecordedCause(status); reason != "" {
		meta.RemoveStatusCondition(&status.Conditions, api.ConditionSucceeded)
		status.FailedItem = ""
	}
}

// SetFailure records why a Transaction that has not made any change is about to
// end. Succeeded stays Unknown until it has.
func SetFailure(status *api.TransactionStatus, generation int64, now time.Time, cause Cause) {
	status.FailedItem = cause.Item
	setCondition(status, generation, now, condition{api.ConditionSucceeded, unknown, cause.Reason, errclass.Printable(cause.Message)})
}

// Failure returns what SetFailure recorded. While nothing is, the reason of the
// condition is the phase.
func Failure(status *api.TransactionStatus) (Cause, bool) {
	c := meta.FindStatusCondition(status.Conditions, api.ConditionSucceeded)
	if c == nil || c.Status != metav1.ConditionUnknown {
		return Cause{}, false
	}
	switch api.Phase(c.Reason) {
	case api.PhasePending, api.PhasePreparing, api.PhasePrepared, api.PhaseCommitting:
		return Cause{}, false
	}
	return Cause{Reason: c.Reason, Message: c.Message, Item: status.FailedItem}, true
}
