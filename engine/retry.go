package engine

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// retry is what follows from an error: the wait for the next attempt, and what is told of it.
type retry struct{ *saga }

// pause records what the Transaction waits for, once, and says when to go on.
func (s retry) pause(ctx context.Context, err error) Result {
	var journal *journalError
	if errors.As(err, &journal) {
		// Another process may have ended the Transaction, and locks that this run has
		// kept since have no owner.
		s.memory.SetUnrecorded(true)
		return Result{Err: journal.error}
	}
	if err := s.recordWait(ctx, err); err != nil {
		return Result{Err: err, Within: s.timeLeft()}
	}
	within := s.timeLeft()
	after := errclass.RetryAfter(err)
	if errclass.Is(err, errclass.LockHeld) || errclass.Is(err, errclass.ContentMissing) || errclass.Is(err, errclass.Terminating) || errclass.Is(err, plan.Settling) {
		after = s.pollTime(awaited(s.txn))
	}
	if after <= 0 {
		return Result{Err: err, Within: within}
	}
	result := s.told(err, after)
	if within > 0 {
		result.After, result.Told = min(result.After, within), min(result.Told, within)
	}
	return result
}

// told is the wait after an error that is polled for, with what to be told of instead.
func (s retry) told(err error, poll time.Duration) Result {
	result, objects, items := Result{After: poll}, errclass.AwaitedBy(err), awaited(s.txn)
	if len(objects) == 0 || len(items) > 0 && !errclass.Is(err, plan.NotReady) {
		return result // Something else is waited for, too.
	}
	wait := s.toldTime(items)
	if errclass.Is(err, errclass.LockHeld) {
		wait = min(wait, errclass.RetryAfter(err)) // When it expires, nobody tells.
	}
	if wait > poll {
		result.Awaited, result.Told = objects, wait
		result.Account = types.NamespacedName{Namespace: s.txn.Namespace, Name: s.txn.Spec.ServiceAccountName}
	}
	return result
}

// recordWait records, once, what the Transaction waits for, so that a person who looks sees it.
// Errors that repeat are not written again, unless their number decides.
func (s retry) recordWait(ctx context.Context, err error) error {
	if s.txn.Status.Phase.Terminal() {
		return nil
	}
	counts := !plan.IsWait(err)
	if counts {
		s.memory.Failed()
	}
	decides := counts && (s.txn.Spec.RetryLimit != nil || errclass.Unanswered(err) != "") && s.txn.Status.Phase != api.PhaseRollingBack
	ahead := len(plan.BegunAhead(&s.txn.Status, s.clock.Now())) > 0
	if !decides && !ahead && s.isRecorded(err) && !s.flight.Known.Any(plan.Over) {
		return nil
	}
	next := s.txn.DeepCopy()
	if err := s.recordOver(&next.Status); err != nil {
		return err
	}
	now := s.clock.Now()
	if phase := next.Status.Phase; phase == "" || phase == api.PhasePending {
		s.accept(&next.Status)
		next.Status.Phase = api.PhasePending
	}
	notAhead(&next.Status, now)
	next.Status.Version++
	plan.CountFailures(&s.txn.Status, &next.Status, s.memory.Failures())
	if counts && next.Status.Failures == 0 {
		next.Status.Failures = 1 // What has progressed was done before this attempt failed.
	}
	if decides {
		plan.CountTimeout(&next.Status, err)
	}
	plan.Summarize(next, now)
	plan.SetWaiting(&next.Status, next.Generation, now, err)
	stored, err := s.write(ctx, next)
	if err != nil {
		return err
	}
	s.acknowledged(stored)
	return nil
}

// isRecorded reports whether an error is on record, or a wait that is over before anyone reads
// of it.
func (s retry) isRecorded(err error) bool {
	if errclass.Is(err, plan.Paced) && errclass.RetryAfter(err) < pollInterval {
		return true
	}
	current := meta.FindStatusCondition(s.txn.Status.Conditions, api.ConditionReconciling)
	return current != nil && current.Reason == errclass.ReasonOf(err) && (current.Message == errclass.Message(err) || errclass.ClassOf(err) == errclass.Unknown)
}

// timeLeft is how long it is until the next time is over that ends something: that of the
// changes, of a rollback, or of what is waited for. Zero means that none runs.
func (s retry) timeLeft() time.Duration {
	status, now := &s.txn.Status, s.clock.Now()
	var ends []time.Time
	switch {
	case status.Phase.Terminal() || status.SuspendTime != nil:
		return 0
	case plan.Standing(s.txn):
		ends = append(ends, plan.ApprovalDeadline(s.txn))
	case status.Phase == api.PhaseRollingBack && status.RollbackStartTime != nil:
		ends = append(ends, status.RollbackStartTime.Add(plan.Timeout(s.txn)))
	case status.Phase != api.PhaseRollingBack && status.StartTime != nil:
		ends = append(ends, plan.Deadline(s.txn))
	}
	for _, i := range awaited(s.txn) {
		if left, limited := readyTimeLeft(s.txn, i, now); limited {
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
