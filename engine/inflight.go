package engine

import (
	"slices"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// recordOver puts on record what is over.
func (s *saga) recordOver(status *api.TransactionStatus) error {
	for i, known := range s.flight.Known {
		if known != plan.Over || i >= len(status.Items) {
			continue // Another client may have edited it.
		}
		if err := s.recordItem(&status.Items[i], i); err != nil {
			return err
		}
	}
	return nil
}

func (s *saga) recordItem(item *api.Item, i int) error {
	switch item.State {
	case api.ItemCommitting:
		answer := s.flight.Answer(i)
		item.CreatedUID, item.Unchanged = answer.Made, answer.Unchanged
		item.Warnings = plan.WithWarnings(item.Warnings, answer.Warnings, s.share())
		if i < len(s.txn.Spec.Changes) && plan.Gated(plan.ChangeOf(s.txn, i)) {
			item.WaitStartTime = s.now()
		}
		if item.Failed { // It was found to be in effect after all.
			return plan.SettleFailed(item, api.ItemCommitted)
		}
		return plan.MoveItem(item, api.ItemCommitted)
	case api.ItemRollingBack:
		undone, _ := s.memory.Undone(i)
		plan.ClearSetAside(item)
		plan.Report(item, undone, s.share())
		if plan.RestoredWhen(s.txn, i) {
			plan.BeginRollbackWait(item, *s.now())
			return nil
		}
		return plan.MoveItem(item, api.ItemRolledBack)
	}
	return nil
}

// soFar is the Transaction with the Deletes that are over: what happens to a target may
// depend on whether its owner has been deleted or re-created.
func (s *saga) soFar() (*api.Transaction, error) {
	if !deleteIsOver(s.txn, s.flight.Known) {
		return s.txn, nil
	}
	return s.flight.SoFar(func() (*api.Transaction, error) {
		t := *s.txn
		t.Status.Items = slices.Clone(t.Status.Items)
		return &t, s.recordOver(&t.Status)
	})
}

// deleteIsOver reports whether a Delete is over and not on record.
func deleteIsOver(t *api.Transaction, known plan.Known) bool {
	for i, k := range known {
		if k == plan.Over && plan.Deletes(t, i) {
			return true
		}
	}
	return false
}

// othersOpen reports whether a change of another object than that of item i is still to be
// rolled back.
func othersOpen(t *api.Transaction, known plan.Known, i int) bool {
	own := t.Status.Items[i].Target.Identity()
	for j := range t.Status.Items {
		item := &t.Status.Items[j]
		open := item.State == api.ItemCommitted || item.State == api.ItemCommitting || item.State == api.ItemRollingBack && known[j] != plan.Over
		if j != i && open && !plan.Restoring(item) && item.Target.Identity() != own {
			return true
		}
	}
	return false
}
