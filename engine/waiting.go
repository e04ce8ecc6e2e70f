package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/fault"
)

// note records, once, what the Transaction waits for, so that a person who looks
// sees it. Errors that repeat are not written again.
func (s *saga) note(ctx context.Context, err error) error {
	reason, message := fault.ReasonOf(err), fault.Message(err)
	current := meta.FindStatusCondition(s.txn.Status.Conditions, api.ConditionReconciling)
	if s.txn.Status.Phase.Terminal() || current != nil && current.Reason == reason &&
		(current.Message == message || fault.ClassOf(err) == fault.Unknown) {
		return nil
	}
	next := s.txn.DeepCopy()
	now := s.clock.Now()
	if phase := next.Status.Phase; phase == "" || phase == api.PhasePending {
		s.accept(&next.Status)
		next.Status.Phase = api.PhasePending
	}
	next.Status.Version++
	summarize(next, now)
	setCondition(&next.Status, next.Generation, now, condition{api.ConditionReconciling, yes, reason, message})
	setCondition(&next.Status, next.Generation, now, condition{api.ConditionReady, no, reason, message})
	if reason == fault.LockHeld {
		setCondition(&next.Status, next.Generation, now, condition{api.ConditionLocked, no, reason, message})
	}
	stored, err := s.Journal.Checkpoint(ctx, next)
	if err != nil {
		return err
	}
	s.acknowledged(stored)
	return nil
}

// waitingFor is what note recorded last, if the Transaction still waits for it.
func waitingFor(t *api.Transaction) string {
	c := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReconciling)
	if c == nil || c.Reason == string(t.Status.Phase) {
		return ""
	}
	return c.Message
}
