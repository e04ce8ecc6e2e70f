package notify

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/errclass"
)

// turnTime is how much later than the one before it each of those is woken who wait for a lock. The
// first one takes it, as a rule, and the others then wait for that one.
const turnTime = 25 * time.Millisecond

// firstLook is how soon a lock is looked at again that its holder may release at any time.
const firstLook = time.Second

// Hold says for how long a Transaction keeps the locks that it has.
type Hold int

const (
	// HoldUnknown is that of a Transaction of which nothing is heard.
	HoldUnknown Hold = iota
	// HoldTentative is that of one that has not taken all its locks yet. If it is refused one, it releases
	// those that come after it, and no event tells.
	HoldTentative
	// HoldUntilEnd is that of one that keeps them until it ends.
	HoldUntilEnd
)

// heldBy notes which Transaction was found to hold a lock. Those that were about to check whether it is
// free are not woken: it was taken in the meantime.
func (w *Watches) heldBy(o *object, holder types.NamespacedName) {
	hold := w.Holds(holder)
	o.tentative = hold == HoldTentative
	if o.holder == holder && o.state == watching {
		return
	}
	o.holder = holder
	if hold == HoldUnknown {
		w.ended(o, failed)
		return
	}
	o.state = watching
	for _, name := range o.waiters {
		if waiting := w.waiters[name]; waiting.because == o {
			waiting.pending.Stop()
			waiting.pending, waiting.because = nil, nil
		}
	}
}

// Ended wakes those who wait for locks that a Transaction held.
func (w *Watches) Ended(holder types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.of {
		if o.holder != holder || o.state != watching {
			continue
		}
		// A Transaction that starts to wait now must find out who holds it.
		o.state, o.last = failed, w.Clock.Now()
		for n, name := range o.waiters {
			w.wakeAfter(name, time.Duration(n)*turnTime, o)
		}
	}
}

// looksAt says how soon a waiter looks again at a lock that its holder may release at any time. The longer
// that one has had it, the longer it is likely to keep it.
func (w *waiter) looksAt(lock errclass.Awaited, now time.Time) time.Duration {
	if w.lock != lock {
		w.lock, w.found = lock, now
	}
	return max(firstLook, now.Sub(w.found))
}
