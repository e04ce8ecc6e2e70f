package engine

import (
	"context"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/outcome"
)

// committing makes the changes.
type committing struct{ *saga }

// begin records the first intents of a Transaction that did not go on when it was prepared.
func (s committing) begin(ctx context.Context) error {
	return s.recordOpening(ctx, func(status *api.TransactionStatus) error {
		return plan.MovePhase(status, api.PhaseCommitting)
	})
}

// open records intents that the checkpoint before did not open.
func (s committing) open(ctx context.Context) error {
	if come, err := pace(s).turn(ctx); !come {
		return err
	}
	if plan.GuardsFirst(s.txn.Status.Items) {
		if may, err := guarding(s).beforeFirst(ctx); !may || err != nil {
			return err
		}
	}
	return s.openNext(ctx)
}

// capture takes the before-image of an item that could not be prepared before: an
// earlier item has changed its target by now, or it is only now known to be wanted. An
// Await, which has none, begins to wait.
func (s committing) capture(ctx context.Context, i int) error {
	// Whether it is wanted is asked when its turn comes.
	if come, err := pace(s).turn(ctx); !come {
		return err
	}
	l, err := s.keepLocks(ctx)
	if err != nil {
		return s.stopMakingIf(ctx, i, err)
	}
	found, err := s.judge(ctx, i)
	if err != nil {
		return s.failItemIf(ctx, i, err)
	}
	switch {
	case found.deletes(s.txn.Spec.Changes[i]):
		return s.deleteInstead(ctx, i, found)
	case !found.wanted():
		return s.skip(ctx, i, found)
	}
	if s.txn.Status.Items[i].Type == api.Await {
		return s.record(ctx, func(status *api.TransactionStatus) error {
			s.noteVerdict(&status.Items[i], found)
			return plan.BeginAwait(&status.Items[i], *s.now())
		})
	}
	s.memory.SetUnrecorded(true)
	saved, err := s.saveImages(ctx, l, []int{i})
	if err != nil {
		return s.failItemIf(ctx, i, err)
	}
	err = s.record(ctx, func(status *api.TransactionStatus) error {
		s.noteVerdict(&status.Items[i], found)
		return s.recordImages(status, []int{i}, saved)
	})
	if err == nil {
		s.memory.SetUnrecorded(false)
	}
	return err
}

// do makes changes whose intents this process has recorded, side by side if there are
// several.
func (s committing) do(ctx context.Context, these []int) error {
	l, err := s.keepLocks(ctx)
	if err != nil {
		return s.stopMakingIf(ctx, these[0], err)
	}
	return s.send(ctx, l, these...)
}

// resolve goes on with an intent that this run found open, or whose outcome it
// does not know: the target says whether the change is in effect.
func (s committing) resolve(ctx context.Context, i int) error {
	l, err := s.keepLocks(ctx)
	if err != nil {
		return s.stopMakingIf(ctx, i, err)
	}
	observe, err := s.observer(i, api.ItemCommitting, s.warner(i))
	if err != nil {
		return err
	}
	finding, err := observe(ctx)
	if err != nil {
		return s.failItemIf(ctx, i, err)
	}
	switch finding {
	case outcome.Applied:
		s.flight.Happened(i, plan.Ended)
		return nil
	case outcome.Diverged:
		return s.failItem(ctx, plan.ItemCause(s.txn, i, plan.Diverged(s.txn, i)))
	case outcome.Applying:
		s.unsure(i)
		return s.send(ctx, l, i)
	}
	if plan.Suspended(s.txn) {
		s.flight.Happened(i, plan.Left)
		return nil
	}
	if plan.ChangeOf(s.txn, i).Type == api.Create {
		// It is asked again where it counts; until then there is nothing to write.
		if err := s.mayCreate(i); err != nil {
			return err
		}
	}
	return s.send(ctx, l, i)
}
