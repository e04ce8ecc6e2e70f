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

// flight is what this process has in flight. It holds as long as nobody else has written the
// status.
type flight struct {
	known plan.Known
	// answers are those to changes that are over, by item.
	answers map[int]*answer
	// soFar is what saga.soFar returns; nil if it was not asked since something changed.
	soFar *api.Transaction
}

// answer is what is to be recorded of a change that is in effect.
type answer struct {
	made types.UID // the object that it has made
	said []string  // warnings about it
}

func newFlight() *flight {
	return &flight{known: plan.Known{}, answers: map[int]*answer{}}
}

// happened notes an event of item i.
func (f *flight) happened(i int, e plan.Event) {
	f.known[i] = f.known[i].After(e)
}

// told is the answer to the change of item i, to be filled in.
func (f *flight) told(i int) *answer {
	if f.answers[i] == nil {
		f.answers[i] = &answer{}
	}
	return f.answers[i]
}

// inFlight is what Decide has to know.
func (s *saga) inFlight() plan.InFlight {
	return plan.InFlight{
		Known:   s.flight.known,
		Due:     s.clock.Since(s.wrote) >= max(s.policy.Lateness/2, writeShare*s.took),
		LookDue: s.lookDue(),
	}
}

// writeShare is how many times as long as it takes to write the status is worked before
// it is written again, so that of a large Transaction not most of the time goes into it.
const writeShare = 10

// isOver notes that the change of item i is in effect, or that it is rolled back.
func (s *saga) isOver(i int) {
	s.flight.happened(i, plan.Ended)
	s.flight.soFar = nil
}

// opened notes what a checkpoint has recorded.
func (f *flight) opened(before, after []api.Item, recorded func(i int)) {
	for i := range min(len(before), len(after)) {
		state := after[i].State
		if state != api.ItemCommitting && state != api.ItemRollingBack {
			f.drop(i)
		} else if before[i].State != state {
			f.drop(i)
			f.happened(i, plan.Recorded)
			recorded(i)
		}
	}
	f.soFar = nil
}

func (f *flight) drop(i int) {
	delete(f.known, i)
	delete(f.answers, i)
}

// recordOver puts on record what is over.
func (s *saga) recordOver(status *api.TransactionStatus) error {
	for i, known := range s.flight.known {
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
		told := s.flight.told(i)
		item.CreatedUID = told.made
		item.Warnings = plan.WithWarnings(item.Warnings, told.said, s.share())
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

// deleteIsOver reports whether a Delete is over and not on record.
func (s *saga) deleteIsOver() bool {
	for i, known := range s.flight.known {
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
	if !s.flight.known.Any(plan.Over) {
		return nil
	}
	return s.checkpoint(ctx, func(*api.TransactionStatus) error { return nil })
}

// withdraw withdraws the intents of changes for which nothing was sent.
func (s *saga) withdraw(status *api.TransactionStatus) error {
	return s.withdrawIntents(status, api.ItemCommitting, api.ItemPrepared)
}

// withdrawUndos withdraws the intents of compensations for which nothing was sent.
func (s *saga) withdrawUndos(status *api.TransactionStatus) error {
	return s.withdrawIntents(status, api.ItemRollingBack, api.ItemCommitted)
}

func (s *saga) withdrawIntents(status *api.TransactionStatus, open, closed api.ItemState) error {
	for i, known := range s.flight.known {
		if known == plan.Unsent && i < len(status.Items) && status.Items[i].State == open {
			if err := plan.MoveItem(&status.Items[i], closed); err != nil {
				return err
			}
		}
	}
	return nil
}
