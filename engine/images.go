package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// saveImages saves the before-images of some items, for a step that has kept the locks.
func (s *saga) saveImages(ctx context.Context, l locked, items []int) (Prepared, error) {
	if err := l.check(s); err != nil {
		return Prepared{}, err
	}
	saved, err := s.Planner.Prepare(ctx, s.txn, items, s.memory.Doubt)
	if err == nil {
		s.memory.SetImages(saved.Ref)
	}
	return saved, err
}

// recordImages records where they are, and what else is known of the items by then.
func (s *saga) recordImages(status *api.TransactionStatus, items []int, saved Prepared) error {
	refused := false
	for n, i := range items {
		known := saved.Items[n]
		if known.Refused != nil {
			refused = true
			if err := plan.FailItem(s.txn, status, i, plan.ItemCause(s.txn, i, known.Refused), s.clock.Now()); err != nil {
				return err
			}
			continue
		}
		if status.Items[i].DeferredBy == "" {
			status.Items[i].DeferredBy = known.DeferredBy
		}
		if known.DeferredBy != "" {
			continue
		}
		if plan.DeletesInstead(s.txn, i) && known.Image.UID == "" {
			if err := plan.SkipAbsent(s.txn, &status.Items[i], i); err != nil {
				return err
			}
			continue
		}
		if status.Items[i].Before = &known.Image; s.policy.HistoryLimit(s.txn) == 0 {
			known.Image.After = "" // It is of use to the history alone.
		}
		status.Items[i].Taken, status.Items[i].Warnings = known.Taken, known.Warnings
		if err := plan.MoveItem(&status.Items[i], api.ItemPrepared); err != nil {
			return err
		}
	}
	status.RollbackRef = saved.Ref
	if saved.Account != "" {
		status.ServiceAccountUID = types.UID(saved.Account)
	}
	if refused {
		return plan.SkipDependents(s.txn, status.Items)
	}
	return nil
}
