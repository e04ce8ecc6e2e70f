package notify

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// turnTime is how much later than the one before it each of those is woken who wait for a lock. The
// first one takes it, as a rule, and the others then wait for that one.
const turnTime = 25 * time.Millisecond

// heldBy notes which Transaction was found to hold a lock. Those that were about to check whether it is
// free are not woken: it was taken in the meantime.
func (w *Watches) heldBy(o *object, holder types.NamespacedName) {
	if o.holder == holder && o.state == watching {
		return
	}
	o.holder = holder
	if !w.Holds(holder) {
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
