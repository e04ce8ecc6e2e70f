package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// note records, once, what the Transaction waits for, so that a person who looks sees it.
// Errors that repeat are not written again, unless their number decides.
func (s *saga) note(ctx context.Context, err error) error {
	if s.txn.Status.Phase.Terminal() {
		return nil
	}
	counts := !plan.IsWait(err)
	if counts {
		s.memory.Failed()
	}
	decides := counts && s.txn.Spec.RetryLimit != nil && s.txn.Status.Phase != api.PhaseRollingBack
	ahead := len(plan.BegunAhead(&s.txn.Status, s.clock.Now())) > 0
	if !decides && !ahead && s.noted(err) && !s.flight.Known.Any(plan.Over) {
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
	s.notAhead(&next.Status)
	next.Status.Version++
	next.Status.Failures += s.memory.Failures()
	plan.Summarize(next, now)
	plan.SetWaiting(&next.Status, next.Generation, now, err)
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
	if errclass.Is(err, plan.Paced) && errclass.RetryAfter(err) < pollInterval {
		return true
	}
	current := meta.FindStatusCondition(s.txn.Status.Conditions, api.ConditionReconciling)
	return current != nil && current.Reason == errclass.ReasonOf(err) && (current.Message == errclass.Message(err) || errclass.ClassOf(err) == errclass.Unknown)
}
