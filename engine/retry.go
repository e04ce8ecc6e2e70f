package engine

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// isWait reports whether an error says only that something is not so yet. Any other is a
// failed attempt.
func isWait(err error) bool {
	switch errclass.ReasonOf(err) {
	case errclass.LockHeld, errclass.Terminating, errclass.KindNotFound, errclass.NotInEffect, settling, notReady, paced:
		return true
	}
	return false
}

// note records, once, what the Transaction waits for, so that a person who looks sees it.
// Errors that repeat are not written again, unless their number decides.
func (s *saga) note(ctx context.Context, err error) error {
	if s.txn.Status.Phase.Terminal() {
		return nil
	}
	counts := !isWait(err)
	if counts {
		s.know(func(m *memory) { m.failures++ })
	}
	decides := counts && s.txn.Spec.RetryLimit != nil && s.txn.Status.Phase != api.PhaseRollingBack
	ahead := len(begunLater(&s.txn.Status, s.clock.Now())) > 0
	if !decides && !ahead && s.noted(err) && len(s.flight.over) == 0 {
		return nil
	}
	reason, message := errclass.ReasonOf(err), errclass.Message(err)
	next := s.txn.DeepCopy()
	if err := s.recordOver(&next.Status); err != nil {
		return err
	}
	now := s.clock.Now()
	if phase := next.Status.Phase; phase == "" || phase == api.PhasePending {
		s.accept(&next.Status)
		next.Status.Phase = api.PhasePending
	}
	s.notAhead(&next.Status)
	next.Status.Version++
	s.know(func(m *memory) { next.Status.Failures += m.failures })
	summarize(next, now)
	setCondition(&next.Status, next.Generation, now, condition{api.ConditionReconciling, yes, reason, message})
	setCondition(&next.Status, next.Generation, now, condition{api.ConditionReady, no, reason, message})
	if reason == errclass.LockHeld {
		setCondition(&next.Status, next.Generation, now, condition{api.ConditionLocked, no, reason, message})
	}
	stored, err := s.Journal.Checkpoint(ctx, next)
	if err != nil {
		return err
	}
	s.acknowledged(stored)
	return nil
}

// noted reports whether an error is on record, or a wait that is over before anybody reads
// of it.
func (s *saga) noted(err error) bool {
	if errclass.Is(err, paced) && errclass.RetryAfter(err) < pollInterval {
		return true
	}
	current := meta.FindStatusCondition(s.txn.Status.Conditions, api.ConditionReconciling)
	return current != nil && current.Reason == errclass.ReasonOf(err) && (current.Message == errclass.Message(err) || errclass.ClassOf(err) == errclass.Unknown)
}

// retriesOver is the cause of the end of a Transaction that has failed too often.
func retriesOver(t *api.Transaction) (Cause, bool) {
	limit := t.Spec.RetryLimit
	if limit == nil || t.Status.Failures <= *limit {
		return Cause{}, false
	}
	message := fmt.Sprintf("%d attempts have failed, and spec.retryLimit is %d", t.Status.Failures, *limit)
	if waiting := waitingFor(t); waiting != "" {
		message += ": " + waiting
	}
	return Cause{Reason: errclass.RetryLimitExceeded, Message: errclass.Printable(message)}, true
}

// waitingFor is what note recorded last, if the Transaction still waits for it.
func waitingFor(t *api.Transaction) string {
	c := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReconciling)
	if c == nil || c.Reason == string(t.Status.Phase) {
		return ""
	}
	return c.Message
}
