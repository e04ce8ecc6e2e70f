package memory

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/outcome"
)

// All are the memories of a process. It is safe for use by several goroutines.
type All struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	entries map[types.UID]*entry // of Transactions that have not ended, or may have left something
	cleared clearedUp
	retired map[types.UID]bool
}

// New returns the memories of a process that knows nothing.
func New(c clock.PassiveClock) *All {
	return &All{clock: c, entries: map[types.UID]*entry{}, cleared: clearedUp{since: map[types.UID]time.Time{}}}
}

// Of returns the memory of a Transaction. Nothing is kept of it before something is noted.
func (a *All) Of(t *api.Transaction) *Memory { return &Memory{all: a, txn: t} }

// Recall is called when a run begins. It returns what is in flight, if this process was the
// last to write the Transaction, and nil otherwise. A Transaction that it meets half-way was
// run by another process, whose requests may be under way.
func (a *All) Recall(t *api.Transaction) *Flight {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.entries[t.UID]
	if ok {
		e.missed = time.Time{}
	}
	switch phase := t.Status.Phase; {
	case ok && e.flight != nil && e.checkpoints == t.Status.Version:
		return e.flight
	case (phase == "" || phase == api.PhasePending || phase == api.PhasePlanned) && !plan.PlannedBefore(t): // nothing was taken for it
	case ok && e.checkpoints != t.Status.Version:
		// Another process has gone on with it, or this one took it for new by a stale answer.
		e.doubt, e.checkpoints, e.txn, e.flight = a.clock.Now(), t.Status.Version, keptOf(t), nil
		maps.DeleteFunc(e.undone, func(i int, _ outcome.Undone) bool { return plan.Creates(t, i) })
	case ok:
	case phase.Terminal() && (a.cleared.has(t.UID) || !a.EndedLately(t.Status.CompletionTime) && t.DeletionTimestamp == nil):
	default:
		e = newEntry(t)
		e.doubt, e.images = a.clock.Now(), t.Status.RollbackRef
		a.entries[t.UID] = e
	}
	return nil
}

// Named returns the Transactions of a name for which this process may have taken something.
func (a *All) Named(name types.NamespacedName) []*api.Transaction {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*api.Transaction
	for _, e := range a.entries {
		if e.txn.name == name {
			out = append(out, e.txn.transaction())
		}
	}
	return out
}

// Drop forgets one Transaction: it is met again as if another process had run it.
func (a *All) Drop(t *api.Transaction) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.entries, t.UID)
}

// Forget forgets some Transactions, which another process runs from now on, and returns them.
func (a *All) Forget(these func(types.NamespacedName) bool) []*api.Transaction {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*api.Transaction
	for uid, e := range a.entries {
		if these(e.txn.name) {
			out = append(out, e.txn.transaction())
			delete(a.entries, uid)
		}
	}
	// Another may leave something of those that were cleared up, too. It costs little to
	// look at the rest of them again.
	clear(a.cleared.since)
	return out
}

// Knows reports whether anything is kept of a Transaction.
func (a *All) Knows(uid types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.entries[uid]
	return ok
}

// IsCleared reports whether nothing is left of a Transaction since a short while ago.
func (a *All) IsCleared(uid types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cleared.has(uid)
}

// Clear notes that nothing is left of a Transaction of which nothing is kept.
func (a *All) Clear(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.entries[uid]; !ok {
		a.cleared.add(uid, a.clock.Now())
	}
}

// Retire names the Transactions that are to be deleted before their time, and no others.
func (a *All) Retire(those map[types.UID]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.retired = those
}

// Len is how many Transactions something is kept of.
func (a *All) Len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.entries)
}

// Suspicion is how long after the end of a Transaction it is thought possible that a process
// which was late with it has died and left something.
const Suspicion = 10 * time.Minute

// EndedLately reports whether a Transaction that was completed then may have something left
// of it.
func (a *All) EndedLately(completion *metav1.Time) bool {
	if completion == nil {
		return false
	}
	ago := a.clock.Since(completion.Time)
	return -Suspicion < ago && ago < Suspicion
}

// clearedUp are the Transactions of which nothing is left since a short while ago.
type clearedUp struct {
	since map[types.UID]time.Time
	prune int // the size at which those that count no more are dropped
}

func (c *clearedUp) has(uid types.UID) bool {
	_, ok := c.since[uid]
	return ok
}

func (c *clearedUp) add(uid types.UID, now time.Time) {
	if len(c.since) >= c.prune {
		for old, then := range c.since {
			if now.Sub(then) > 2*Suspicion {
				delete(c.since, old)
			}
		}
		c.prune = max(64, 2*len(c.since))
	}
	c.since[uid] = now
}
