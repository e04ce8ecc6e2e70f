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
		return timeoutsOver(t)
	}
	message := fmt.Sprintf("%d attempts have failed, and spec.retryLimit is %d", t.Status.Failures, *limit)
	if waiting := WaitingFor(t); waiting != "" {
		message += ": " + waiting
	}
	return Cause{Reason: errclass.RetryLimitExceeded, Message: errclass.Printable(message)}, true
}

// CountTimeout counts an attempt that has failed because a request about an object was not answered in
// time. It counts once the status that has it is written: then the API server answers others. So
// an outage of the API server, or of what it stores objects in, is no reason to give up.
func CountTimeout(status *api.TransactionStatus, err error) {
	object := errclass.Printable(errclass.Unanswered(err))
	switch before := status.TimedOut; {
	case object == "":
	case before != nil && before.Object == object:
		before.Attempts++
	default:
		status.TimedOut = &api.TimedOut{Object: object, Attempts: 1}
	}
}

// TimedOutTooOften reports whether no further attempt is to time out on the same object.
func TimedOutTooOften(t *api.Transaction) bool {
	return t.Spec.RetryLimit == nil && t.Status.TimedOut != nil && t.Status.TimedOut.Attempts >= api.TimeoutLimit
}

// timeoutsOver is the cause of the end of a Transaction that has timed out on an object too often.
func timeoutsOver(t *api.Transaction) (Cause, bool) {
	if !TimedOutTooOften(t) {
		return Cause{}, false
	}
	message := fmt.Sprintf("%s: %d attempts in a row have timed out, while the API server answered other requests", t.Status.TimedOut.Object, t.Status.TimedOut.Attempts)
	if waiting := WaitingFor(t); waiting != "" {
		message += " (" + errclass.Cut(waiting, errclass.MaxMessage/2) + ")"
	}
	message += "; mend the webhook, or make the object smaller if it has very many field managers, or allow more by spec.retryLimit"
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

// CountFailures adds the attempts that have failed to those on record, before the status is
// written. They count in a row: once what was tried has succeeded, the next wait has all of its
// attempts again.
func CountFailures(before, after *api.TransactionStatus, failed int32) {
	if !Progressed(before, after) {
		after.Failures += failed
		return
	}
	after.Failures, after.TimedOut = 0, nil
}

// Progressed reports whether one status is further than another: a phase was passed on the way to
// the commit, or a change was prepared, made, found ready or rolled back. An intent alone is no
// progress, and neither is to turn back.
func Progressed(before, after *api.TransactionStatus) bool {
	switch after.Phase {
	case api.PhasePreparing, api.PhasePrepared, api.PhaseCommitting, api.PhaseCommitted, api.PhasePlanned:
		if before.Phase != after.Phase {
			return true
		}
	}
	for i := range min(len(before.Items), len(after.Items)) {
		was, is := &before.Items[i], &after.Items[i]
		if was.ReadyTime == nil && is.ReadyTime != nil || !was.Restored() && is.Restored() {
			return true
		}
		switch {
		case was.State == is.State:
		case was.State == api.ItemPending, is.State == api.ItemSkipped, is.State == api.ItemRolledBack:
			return true
		case was.State == api.ItemCommitting && is.State == api.ItemCommitted:
			return true
		}
	}
	return false
}
