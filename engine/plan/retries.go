package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// IsWait reports whether an error says only that something is not so yet. Any other is a
// failed attempt.
func IsWait(err error) bool {
	switch errclass.ReasonOf(err) {
	case errclass.ContentMissing, errclass.LockHeld, errclass.Terminating, errclass.KindNotFound, errclass.NotInEffect, Settling, NotReady, Paced:
		return true
	}
	return false
}

// retriesOver is the cause of the end of a Transaction that has failed too often.
func retriesOver(t *api.Transaction) (Cause, bool) {
	limit := t.Spec.RetryLimit
	if limit == nil || t.Status.Failures <= *limit {
		return Cause{}, false
	}
	message := fmt.Sprintf("%d attempts have failed, and spec.retryLimit is %d", t.Status.Failures, *limit)
	if waiting := WaitingFor(t); waiting != "" {
		message += ": " + waiting
	}
	return Cause{Reason: errclass.RetryLimitExceeded, Message: errclass.Printable(message)}, true
}

// WaitingFor is what note recorded last, if the Transaction still waits for it.
func WaitingFor(t *api.Transaction) string {
	c := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReconciling)
	if c == nil || c.Reason == string(t.Status.Phase) {
		return ""
	}
	return c.Message
}
