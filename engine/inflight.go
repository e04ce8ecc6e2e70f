package engine

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// One checkpoint records several intents, and a later one what has come of all of them:
// a write of the status costs more the larger the Transaction is. In between this process
// has in flight what is not on record. If it dies, the intents are on record, and whoever
// goes on looks at their targets.

// flight is the InFlight of a process, and what belongs to it. It holds as long as nobody else
// has written the status.
type flight struct {
	fresh, over, parked items
	// sure are the items whose open intents this process has recorded, with no request
	// for them that has taken effect or may yet.
	sure items
	// made are the uids of the objects that changes have made, by item.
	made map[int]types.UID
	// said has the warnings about changes that are in effect, by item.
	said map[int][]string
	// soFar is what saga.soFar gives; nil if it was not asked since something changed.
	soFar *api.Transaction
}

func newFlight() *flight {
	return &flight{fresh: items{}, over: items{}, parked: items{}, sure: items{}, made: map[int]types.UID{}, said: map[int][]string{}}
}

// inFlight is what Decide has to know.
func (s *saga) inFlight() plan.InFlight {
	return plan.InFlight{
		Fresh: s.flight.fresh, Over: s.flight.over, Parked: s.flight.parked,
		Due:     s.clock.Since(s.wrote) >= max(s.policy.Lateness/2, writeShare*s.took),
		LookDue: s.lookDue(),
	}
}

// writeShare is how many times as long as it takes to write the status is worked before
// it is written again, so that of a large Transaction not most of the time goes into it.
const writeShare = 10

// isOver notes that the change of item i is in effect, or that it is rolled back.
func (s *saga) isOver(i int) {
	delete(s.flight.fresh, i)
	s.flight.over[i], s.flight.soFar = true, nil
}

// opened notes what a checkpoint has recorded.
func (g *flight) opened(before, after []api.Item, recorded func(i int)) {
	for i := range min(len(before), len(after)) {
		state := after[i].State
		if state != api.ItemCommitting && state != api.ItemRollingBack {
			g.drop(i)
		} else if before[i].State != state {
			g.drop(i)
			g.fresh[i], g.sure[i] = true, true
			recorded(i)
		}
	}
	g.soFar = nil
}

func (g *flight) drop(i int) {
	delete(g.fresh, i)
	delete(g.over, i)
	delete(g.parked, i)
	delete(g.sure, i)
	delete(g.made, i)
	delete(g.said, i)
}

// recordOver puts on record what is over.
func (s *saga) recordOver(status *api.TransactionStatus) error {
	for i := range s.flight.over {
		if i >= len(status.Items) {
			continue // Another client has edited it.
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
		item.CreatedUID = s.flight.made[i]
		plan.AddWarnings(item, s.flight.said[i], s.share())
		if i < len(s.txn.Spec.Changes) && plan.Gated(s.txn.Spec.Changes[i]) {
			item.WaitStartTime = s.now()
		}
		return plan.MoveItem(item, api.ItemCommitted)
	case api.ItemRollingBack:
		undone, _ := s.undone(i)
		plan.ClearSetAside(item)
		plan.Report(item, undone, s.share())
		return plan.MoveItem(item, api.ItemRolledBack)
	}
	return nil
}

// soFar is the Transaction with the Deletes that are over: what happens to a target may
// depend on whether its owner has been deleted or re-created.
func (s *saga) soFar() (*api.Transaction, error) {
	if !s.flight.over.holdsDelete(s.txn) {
		return s.txn, nil
	}
	if s.flight.soFar == nil {
		t := *s.txn
		t.Status.Items = slices.Clone(t.Status.Items)
		if err := s.recordOver(&t.Status); err != nil {
			return nil, err
		}
		s.flight.soFar = &t
	}
	return s.flight.soFar, nil
}

// writeDown records what is over, and opens what comes next.
func (s *saga) writeDown(ctx context.Context) error {
	return s.record(ctx, func(*api.TransactionStatus) error { return nil })
}

// putDown records what is over, and opens nothing.
func (s *saga) putDown(ctx context.Context) error {
	if len(s.flight.over) == 0 {
		return nil
	}
	return s.checkpoint(ctx, func(*api.TransactionStatus) error { return nil })
}

// withdraw rolls back the intents of changes for which nothing was sent.
func (s *saga) withdraw(status *api.TransactionStatus) error {
	return s.takeBack(status, api.ItemCommitting, api.ItemPrepared)
}

// withdrawUndos rolls back the intents of compensations for which nothing was sent.
func (s *saga) withdrawUndos(status *api.TransactionStatus) error {
	return s.takeBack(status, api.ItemRollingBack, api.ItemCommitted)
}

func (s *saga) takeBack(status *api.TransactionStatus, open, closed api.ItemState) error {
	for i := range s.flight.fresh {
		if i < len(status.Items) && status.Items[i].State == open {
			if err := plan.MoveItem(&status.Items[i], closed); err != nil {
				return err
			}
		}
	}
	return nil
}
