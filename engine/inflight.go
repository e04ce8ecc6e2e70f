package engine

import (
	"context"
	"slices"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// inFlight is what Decide has to know.
func (s *saga) inFlight() plan.InFlight {
	return plan.InFlight{
		Known:   s.flight.Known,
		Due:     s.clock.Since(s.wrote) >= max(s.policy.Lateness/2, writeShare*s.took),
		LookDue: s.lookDue(),
	}
}

// writeShare is how many times as long as it takes to write the status is worked before
// it is written again, so that of a large Transaction not most of the time goes into it.
const writeShare = 10

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
		item.CreatedUID = answer.Made
		plan.AddWarnings(item, answer.Warnings, s.share())
		if i < len(s.txn.Spec.Changes) && plan.Gated(s.txn.Spec.Changes[i]) {
			item.WaitStartTime = s.now()
		}
		return plan.MoveItem(item, api.ItemCommitted)
	case api.ItemRollingBack:
		undone, _ := s.memory.Undone(i)
		plan.ClearSetAside(item)
		plan.Report(item, undone, s.share())
		return plan.MoveItem(item, api.ItemRolledBack)
	}
	return nil
}

// deleteIsOver reports whether a Delete is over and not on record.
func (s *saga) deleteIsOver() bool {
	for i, known := range s.flight.Known {
		if known == plan.Over && plan.Deletes(s.txn, i) {
			return true
		}
	}
	return false
}

// soFar is the Transaction with the Deletes that are over: what happens to a target may
// depend on whether its owner has been deleted or re-created.
func (s *saga) soFar() (*api.Transaction, error) {
	if !s.deleteIsOver() {
		return s.txn, nil
	}
	return s.flight.SoFar(func() (*api.Transaction, error) {
		t := *s.txn
		t.Status.Items = slices.Clone(t.Status.Items)
		return &t, s.recordOver(&t.Status)
	})
}

// writeDown records what is over, and opens what comes next.
func (s *saga) writeDown(ctx context.Context) error {
	return s.record(ctx, func(*api.TransactionStatus) error { return nil })
}

// putDown records what is over, and opens nothing.
func (s *saga) putDown(ctx context.Context) error {
	if !s.flight.Known.Any(plan.Over) {
		return nil
	}
	return s.checkpoint(ctx, func(*api.TransactionStatus) error { return nil })
}

// withdraw rolls back the intents of changes for which nothing was sent.
func (s *saga) withdraw(status *api.TransactionStatus) error {
	return s.flight.Withdraw(status, api.ItemCommitting, api.ItemPrepared)
}

// withdrawUndos rolls back the intents of compensations for which nothing was sent.
func (s *saga) withdrawUndos(status *api.TransactionStatus) error {
	return s.flight.Withdraw(status, api.ItemRollingBack, api.ItemCommitted)
}
