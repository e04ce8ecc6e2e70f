package engine

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/outcome"
)

// Intent is the durable record that an item is about to be changed or rolled
// back. Only a stored Transaction gives one.
type Intent struct {
	txn     *api.Transaction
	item    int
	confirm func(ctx context.Context, anyway bool) error
	// mayCreate is MayCreate.
	mayCreate func() error
	// made is Made.
	made func(types.UID)
	// unchanged is Unchanged.
	unchanged func()
	// restored is Restored.
	restored func()
	// warn is Warn.
	warn func([]string)
	// fresh is Fresh.
	fresh bool
	// last is Last.
	last func() bool
}

// intentOf makes the Intent of an item from a Transaction that the API server
// has acknowledged, and refuses when the record is not there.
func intentOf(stored *api.Transaction, item int, states ...api.ItemState) (Intent, error) {
	got := stored.Status.Items[item].State
	for _, want := range states {
		if got == want {
			return Intent{txn: stored, item: item}, nil
		}
	}
	return Intent{}, fmt.Errorf("item %d is %s: no intent of it is on record", item, got)
}

// Confirm makes sure that no other process has gone on from the record, before a
// request that would take effect although it comes too late. It asks only if a while
// has passed since the record was written, such as in a process that hung, if another
// client may have written it, or if it is to do so anyway. Its error says nothing
// about the target.
func (in Intent) Confirm(ctx context.Context, anyway bool) error {
	if in.confirm == nil {
		return nil
	}
	return in.confirm(ctx, anyway)
}

// MayCreate makes sure that no creation sent before is still under way, before the
// object is created: nothing in the cluster would refuse the late one, once the object
// is gone again. Its error says nothing about the target, and is worth another try.
func (in Intent) MayCreate() error {
	if in.mayCreate == nil {
		return nil
	}
	return in.mayCreate()
}

// Made is told the uid of the object that the change has made.
func (in Intent) Made(object types.UID) {
	if in.made != nil {
		in.made(object)
	}
}

// Unchanged is told that the change has needed no write. That counts only if no request that was
// sent before can have taken effect.
func (in Intent) Unchanged() {
	if in.unchanged != nil && in.fresh {
		in.unchanged()
	}
}

// Restored is told that all values are restored, though their owners may not be yet.
func (in Intent) Restored() {
	if in.restored != nil {
		in.restored()
	}
}

// Warn is given the warnings about the change, now that it is in effect.
func (in Intent) Warn(warnings []string) {
	if in.warn != nil {
		in.warn(warnings)
	}
}

// Fresh reports whether no request for the change that was sent before can have taken
// effect: what has happened to the target since it was prepared is then another
// client's doing.
func (in Intent) Fresh() bool { return in.fresh }

// Last reports whether every other change is rolled back, as far as that is possible. Before
// that, what stands in the way of a compensation may be the doing of one of them.
func (in Intent) Last() bool { return in.last != nil && in.last() }

// Transaction is the Transaction as stored; not to be changed.
func (in Intent) Transaction() *api.Transaction { return in.txn }

// Index is the position of the item.
func (in Intent) Index() int { return in.item }

// Change is what to do.
func (in Intent) Change() api.Change { return plan.ChangeOf(in.txn, in.item) }

// Item is the record of the item.
func (in Intent) Item() api.Item { return in.txn.Status.Items[in.item] }

// intent returns the Intent of an item, for a step that has kept the locks.
func (s *saga) intent(l locked, i int, state api.ItemState) (Intent, error) {
	if err := l.check(s); err != nil {
		return Intent{}, err
	}
	return s.recorded(i, state)
}

// recorded returns the Intent of an item from what this run goes on from.
func (s *saga) recorded(i int, state api.ItemState) (Intent, error) {
	in, err := intentOf(s.txn, i, state)
	if err != nil {
		return in, err
	}
	in.txn, err = s.soFar()
	in.fresh = s.flight.Known[i].NoEffect()
	// Several changes, or compensations, may be under way.
	in.last = func() bool {
		defer s.ask.take()()
		return plan.IsSetAside(&s.txn.Status.Items[i]) || plan.RollbackStopped(s.txn) || !othersOpen(s.txn, s.flight.Known, i)
	}
	in.confirm = func(ctx context.Context, anyway bool) error {
		defer s.ask.take()()
		// An intent that another process may have recorded is taken over where it counts: they
		// may be at the same change, or about to write the item off.
		return s.confirm(ctx, anyway || !s.memory.Wrote())
	}
	in.mayCreate = func() error {
		defer s.ask.take()()
		return s.mayCreate(i)
	}
	return in, err
}

// observer returns what observes the target of an item, for which no lock is needed. warn is
// given the warnings about a change that is found to be in effect; it may be nil.
func (s *saga) observer(i int, state api.ItemState, warn func([]string)) (func(context.Context) (outcome.Finding, error), error) {
	in, err := s.recorded(i, state)
	if err != nil {
		return nil, err
	}
	in.warn = warn
	return func(ctx context.Context) (outcome.Finding, error) { return s.Changes.Observe(ctx, in) }, nil
}

// warner notes the warnings about a change that is found to be in effect.
func (s *saga) warner(i int) func([]string) {
	return func(warnings []string) { s.flight.Answer(i).Warnings = warnings }
}
