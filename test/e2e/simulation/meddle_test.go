package simulation

import (
	"fmt"
	"time"

	"janus.io/janus/test/faultinject"
)

// faultsAreOver notes that nothing stands in the way of Janus from here on.
func (w *world) faultsAreOver() { w.lastFault, w.quietFrom = w.line.Count(), time.Now() }

// meddle lets something happen beside Janus, now and then, until it is quiet; then
// it gives back what was taken.
func (w *world) meddle() {
	if w.plan.chaotic == 0 || w.restored {
		return
	}
	if w.step >= w.plan.chaotic {
		w.actors.restore()
		w.restored = true
		w.faultsAreOver()
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

// honestReads is how many true answers about an object a process gets after a false
// one: a server that is wrong about it again and again cannot be told from one that
// has it otherwise.
const honestReads = 3

// fault chooses what happens to a request.
func (w *world) fault(c faultinject.Call) faultinject.Fault {
	object := fmt.Sprintf("%d %s", c.Process, c.Key)
	w.reads[object]++
	if w.step >= w.plan.chaotic || c.Resource == "" || w.random.Float64() >= w.plan.faultRate {
		return faultinject.NoFault
	}
	faults := c.Faults()
	if len(faults) == 0 {
		return faultinject.NoFault
	}
	fault := faults[w.random.IntN(len(faults))]
	if fault != faultinject.FalseNotFound && fault != faultinject.Stale && fault != faultinject.Started {
		return fault
	}
	if last, lied := w.lied[object]; w.plan.harmless || lied && w.reads[object]-last <= honestReads {
		return faultinject.NoFault
	}
	w.lied[object] = w.reads[object]
	return fault
}

func (w *world) isFrozen(process int) bool { return time.Now().Before(w.frozen[process]) }
