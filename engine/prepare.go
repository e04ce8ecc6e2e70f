package engine

import (
	"context"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// preparing takes the locks and saves the before-images.
type preparing struct{ *saga }

// prepare locks every target and saves every before-image that can be taken now.
// Nothing here needs undoing, so it is one checkpoint for all items. That records the first intents
// too, unless the Transaction is not to go on.
func (s preparing) prepare(ctx context.Context) error {
	if !s.memory.Wrote() {
		// Anyone who has had it may still be at work. They would go on to make changes under
		// locks that this run releases while it waits.
		if err := s.takeOver(ctx); err != nil {
			return err
		}
	}
	s.memory.SetUnrecorded(true)
	leases, l, err := s.takeLocks(ctx)
	if err != nil {
		return s.failOr(ctx, 0, err)
	}
	if err := s.confirm(ctx, false); err != nil {
		return err
	}
	items := plan.Preparable(s.txn)
	var number int64
	var saved Prepared
	err = s.whileKeepingLocks(ctx, func() error {
		return s.both(
			func() (err error) { number, err = revisions(s).number(ctx); return err },
			func() (err error) { saved, err = s.saveImages(ctx, l, items); return err },
		)
	})
	if err != nil {
		return s.failOr(ctx, number, err)
	}
	if changed := s.planChanged(items, saved); len(changed) > 0 {
		return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
			plan.Outdate(status, changed)
			return nil
		})
	}
	err = s.recordOpening(ctx, func(status *api.TransactionStatus) error {
		status.Revision = number
		for i := range status.Items {
			status.Items[i].LockLease = leases[i]
		}
		if err := s.recordImages(status, items, saved); err != nil {
			return err
		}
		if !plan.MayBegin(s.txn, s.clock.Now()) {
			return plan.MovePhase(status, api.PhasePrepared)
		}
		return plan.MovePhase(status, api.PhaseCommitting)
	})
	if err == nil {
		s.memory.SetUnrecorded(false)
	}
	return err
}

// planChanged names the items that would do something else than in the plan that was approved.
func (s preparing) planChanged(items []int, saved Prepared) []string {
	if !plan.NeedsApproval(s.txn) {
		return nil
	}
	digests := make([]string, len(items))
	for n := range items {
		digests[n] = saved.Items[n].Plan
	}
	return plan.PlansChanged(s.txn.Status.Items, items, digests)
}

// failOr ends the Transaction on an error that will not heal and waits on any
// other. No intent is on record, so there is nothing to roll back. A number that it was given
// stays its own.
func (s preparing) failOr(ctx context.Context, number int64, err error) error {
	if !plan.Definite(err) {
		return err
	}
	cause := plan.CauseOf(err)
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		status.Revision = max(status.Revision, number)
		plan.SetInvalid(status, s.txn.Generation, s.clock.Now(), cause)
		return nil
	})
}
