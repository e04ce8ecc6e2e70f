package engine

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/internal/outcome"
)

// owners restores the owners of a target after its values, as mutate does: the compensation of an
// item goes on until that of another has begun.
type owners struct {
	Changes
	until  map[string]string // by item, the one that has to begin first
	silent map[string]bool   // items that do not tell that their values are restored
	halt   func()            // called when the first has begun
	sure   bool              // whether each makes sure of the record before it is sent

	mu     sync.Mutex
	begun  []string
	others map[string]chan struct{}
}

func (o *owners) Undo(ctx context.Context, in Intent) (outcome.Undone, error) {
	name := in.Item().Name
	o.mu.Lock()
	if !slices.Contains(o.begun, name) {
		close(o.begins(name))
	}
	o.begun = append(o.begun, name)
	wait, waits := o.until[name]
	begins := o.begins(wait)
	o.mu.Unlock()
	if o.halt != nil {
		o.halt()
	}
	if o.sure {
		if err := in.Confirm(ctx, true); err != nil {
			return outcome.Undone{}, err
		}
	}
	undone, err := o.Changes.Undo(ctx, in)
	if err == nil && !o.silent[name] {
		in.Restored()
	}
	if waits {
		select {
		case <-begins:
		case <-time.After(10 * time.Second):
			panic(wait + " does not begin while " + name + " is under way")
		}
	}
	return undone, err
}

// begins is closed when an item is begun. It needs the mutex.
func (o *owners) begins(name string) chan struct{} {
	if o.others == nil {
		o.others = map[string]chan struct{}{}
	}
	if o.others[name] == nil {
		o.others[name] = make(chan struct{})
	}
	return o.others[name]
}

// rollingBackWith is a world whose last change is refused, and whose compensations go on so long.
func rollingBackWith(t *testing.T, until map[string]string) (*world, *owners) {
	w := rollingBack(t)
	o := &owners{Changes: w.engine.Changes, until: until}
	w.engine.Changes = o
	return w, o
}

// The values of a list are restored in its reverse order, and the owners of one while the values of
// the next are.
func TestOwnersAreRestoredWhileTheNextValuesAre(t *testing.T) {
	w, o := rollingBackWith(t, map[string]string{"d": "c", "c": "b", "b": "a"})
	w.run()
	assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	assert.Equal(t, []string{"d", "c", "b", "a"}, o.begun)
	require.NoError(t, checkOrder(w.lines))
	oracle(t, w)
}

func TestOneThatDoesNotTellIsWaitedFor(t *testing.T) {
	w, o := rollingBackWith(t, nil)
	o.silent = map[string]bool{"c": true}
	w.run()
	assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	assert.Equal(t, []string{"d", "c", "b", "a"}, o.begun)
	oracle(t, w)
}

// After one that is refused none begins before it is known what follows from that.
func TestAfterARefusalNoneIsBegun(t *testing.T) {
	w, o := rollingBackWith(t, nil)
	w.refuse["undo c"] = errRefused
	w.after["undo c: fails, Rejected"] = func() {
		assert.Equal(t, []string{"d", "c"}, o.begun)
		delete(w.refuse, "undo c")
	}
	w.run()
	assert.Equal(t, []string{"d", "c", "b", "a", "c"}, o.begun, w.transcript())
	assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	oracle(t, w)
}

// A process that is to end finishes what is under way, and begins nothing.
func TestWhenTheRunIsToEndNoneIsBegun(t *testing.T) {
	w, o := rollingBackWith(t, nil)
	ctx, end := context.WithCancel(t.Context())
	o.halt = end
	w.engine.Run(ctx, w.stored.DeepCopy())
	assert.Equal(t, []string{"d"}, o.begun, w.transcript())
	assert.Equal(t, "RollingBack RollingBack RollingBack RolledBack Rejected", w.statesNow(), w.transcript())
	o.halt = nil
	w.run()
	assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	assert.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}, w.undos)
}

// A compensation that has to be sure takes the Transaction over, which writes the status, while others
// look at when it was written last. The race detector sees if they do not take turns.
func TestACompensationTakesTheTransactionOverWhileOthersBegin(t *testing.T) {
	w, o := rollingBackWith(t, nil)
	w.stored.Spec.Order = api.OrderGraph
	o.sure = true
	w.run()
	assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	assert.ElementsMatch(t, []string{"a", "b", "c", "d"}, o.begun)
	oracle(t, w)
}

func TestIndependentChangesAreRolledBackSideBySide(t *testing.T) {
	w, o := rollingBackWith(t, map[string]string{"d": "c", "c": "d", "b": "a", "a": "b"})
	w.stored.Spec.Order = api.OrderGraph
	w.stored.Spec.Parallelism = ptr.To(int32(2))
	o.silent = map[string]bool{"a": true, "b": true, "c": true, "d": true}
	w.run()
	assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	first, last := o.begun[:2], o.begun[2:]
	assert.ElementsMatch(t, []string{"d", "c"}, first)
	assert.ElementsMatch(t, []string{"b", "a"}, last)
	oracle(t, w)
}

// What another depends on is rolled back after it.
func TestOfAGraphOneThatIsNeededWaits(t *testing.T) {
	w := newWorld(t, append(turned, "e")...).wide(0)
	diamond(w)
	w.needs("e", "d")
	w.refuse["do e"] = errRefused
	o := &owners{Changes: w.engine.Changes, until: map[string]string{"b": "c", "c": "b"}}
	w.engine.Changes = o
	w.run()
	require.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	assert.Equal(t, "d", o.begun[0])
	assert.Equal(t, "a", o.begun[3])
	oracle(t, w)
}

// Of those that were sent with one that is refused, what is rolled back is on record.
func TestWhatIsRolledBackBesideOneThatIsRefused(t *testing.T) {
	for _, order := range []api.OrderPolicy{api.OrderList, api.OrderGraph} {
		w, _ := rollingBackWith(t, nil)
		w.stored.Spec.Order = order
		w.replies["undo c"] = []reply{{err: errLost, lost: true}}
		w.run()
		assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
		assert.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}, w.undos, w.transcript())
		require.NoError(t, checkOrder(w.lines))
		oracle(t, w)
	}
}

// Each refusal is told as it was met: one that was sent again would meet what the first has left.
func TestEachOfSeveralRefusalsIsMetOnce(t *testing.T) {
	w, o := rollingBackWith(t, nil)
	w.stored.Spec.Order = api.OrderGraph
	w.refuse["undo b"], w.refuse["undo d"] = errWritten, errWritten
	w.run()
	assert.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
	assert.Equal(t, "RolledBack Unresolved RolledBack Unresolved Rejected", w.statesNow())
	assert.ElementsMatch(t, []string{"a", "b", "c", "d"}, o.begun, w.transcript())
	oracle(t, w)
}

// A process may end after any call, however many compensations are under way.
func TestACrashAmongSeveralCompensationsChangesNothingAboutTheEnd(t *testing.T) {
	for _, order := range []api.OrderPolicy{api.OrderList, api.OrderGraph} {
		for n := 1; ; n++ {
			w, _ := rollingBackWith(t, nil)
			w.stored.Spec.Order = order
			w.nth = func(call int, _ string) reply { return reply{crash: call == n} }
			w.run()
			require.NoError(t, checkOrder(w.lines), w.transcript())
			require.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
			oracle(t, w)
			if w.calls < n {
				break
			}
		}
	}
}

// pairs lets the first of two calls wait until the second has begun, and the other way round.
type pairs struct {
	t     *testing.T
	begun map[string]chan struct{}
}

func (p pairs) meet(own, other string) {
	close(p.begun[own])
	select {
	case <-p.begun[other]:
	case <-time.After(10 * time.Second):
		p.t.Errorf("%s is not begun while %s is under way", other, own)
	}
}

type pairedHistory struct {
	History
	pairs
}

func (h pairedHistory) Number(ctx context.Context, t *api.Transaction, floor int64) (int64, error) {
	h.meet("number", "images")
	return h.History.Number(ctx, t, floor)
}

func (h pairedHistory) Keep(ctx context.Context, t *api.Transaction) (bool, error) {
	h.meet("revision", "owners")
	return h.History.Keep(ctx, t)
}

type pairedPlanner struct {
	Planner
	pairs
}

func (p pairedPlanner) Prepare(ctx context.Context, t *api.Transaction, items []int, lost func()) (Prepared, error) {
	p.meet("images", "number")
	return p.Planner.Prepare(ctx, t, items, lost)
}

type pairedChanges struct {
	Changes
	pairs
}

func (c pairedChanges) HandOver(ctx context.Context, t *api.Transaction) (map[int]string, error) {
	c.meet("owners", "revision")
	return c.Changes.HandOver(ctx, t)
}

// The number is asked for while the before-images are saved, and the revision made while the fields
// are handed over.
func TestWhatDoesNotNeedEachOtherIsSentTogether(t *testing.T) {
	w := newWorld(t, "a")
	w.stored.Spec.RevisionHistoryLimit = ptr.To(int32(3))
	p := pairs{t, map[string]chan struct{}{}}
	for _, name := range []string{"number", "images", "revision", "owners"} {
		p.begun[name] = make(chan struct{})
	}
	e := w.engine
	e.beside, e.History, e.Planner, e.Changes = fanout.Do, pairedHistory{e.History, p}, pairedPlanner{e.Planner, p}, pairedChanges{e.Changes, p}
	w.run()
	assert.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
	assert.Contains(t, w.transcript(), "number 1\n")
	assert.Contains(t, w.transcript(), "hand over\n")
}
