package simulation

import (
	"fmt"
	"time"

	"janus.io/janus/internal/chaos"
)

// meddle lets something happen beside Janus, now and then, until it is quiet; then
// it gives back what was taken.
func (w *world) meddle() {
	if w.plan.chaotic == 0 || w.restored {
		return
	}
	if w.step >= w.plan.chaotic {
		w.actors.restore()
		w.restored = true
		w.lastFault = w.line.Count()
		return
	}
	if w.random.Float64() >= w.plan.actRate {
		return
	}
	choice := w.plan.acts
	if choice == nil {
		choice = acts
	}
	act := choice[w.random.IntN(len(choice))]
	err := act.do(w.actors)
	w.note("somebody: %s (%v)", act.name, err)
}

// fault chooses what becomes of a request. After a false 404 the next look at the
// same object is true: a server that always denies an object cannot be told from
// one that lacks it.
func (w *world) fault(c chaos.Call) chaos.Fault {
	if w.step >= w.plan.chaotic || c.Resource == "" || w.random.Float64() >= w.plan.faultRate {
		return chaos.NoFault
	}
	faults := c.Faults()
	if len(faults) == 0 {
		return chaos.NoFault
	}
	fault := faults[w.random.IntN(len(faults))]
	if w.plan.harmless && (fault == chaos.FalseNotFound || fault == chaos.Stale) {
		return chaos.NoFault
	}
	object := fmt.Sprintf("%d %s", c.Process, c.Key)
	if fault == chaos.FalseNotFound && w.denied[object] {
		fault = chaos.NoFault
	}
	w.denied[object] = fault == chaos.FalseNotFound
	return fault
}

func (w *world) isFrozen(process int) bool { return time.Now().Before(w.frozen[process]) }
