package protocol

import (
	"fmt"
	"strings"

	api "janus.io/janus/api/v1alpha1"
)

// Trace is what the API server has stored of a Transaction of two changes and of their targets, in
// the terms of saga.pml: from when the Transaction was Preparing until it ended.
type Trace struct {
	setting
	Events []Event
}

// setting is what the model has to be told. trace.h reads it in this order.
type setting struct {
	kinds             [2]int
	window, processes int
	// How often what may happen has happened, or more: the trace shows what came into effect.
	crashes, lost, late, denied, waits, foreign, overdue int
	// writer is the process that has stored that it is Preparing.
	writer int
}

// Event is one thing that was stored, by the names that saga.pml has for it.
type Event struct {
	What, By, Item              int
	UID, Value, Manager         int // of a target
	Phase, State0, State1, Kept int // of the Transaction; Kept is its finalizer
}

// IsStatus reports whether the Transaction was written.
func (e Event) IsStatus() bool { return e.What == status }

// IsWrite reports whether Janus wrote a target.
func (e Event) IsWrite() bool { return e.What != status && e.What != byOther }

// Circumstances are what the evidence of a run does not show.
type Circumstances struct {
	// Processes is how many there are at once, and Slot which of them one is that began later.
	Processes int
	Slot      func(process int) int
	// Window is how many intents are open at once; zero means all.
	Window int
	// GivenUp is how many requests may have been given up before they were sent.
	GivenUp int
	// Overdue is set if the time of the Transaction may have been over.
	Overdue bool
}

// What saga.pml calls things.
const (
	doPatch, doCreate, doDelete                      = 1, 2, 3
	restore, owners, unmake, remake, status, byOther = 4, 5, 6, 7, 8, 9
	none, before, changed, theirs                    = 0, 1, 2, 3
	preparing, prepared, failing                     = 1, 2, 3
	processNetwork, processOther, processFirst       = 1, 2, 3
	nobody                                           = 2
)

var (
	kindOf  = map[api.ChangeType]int{api.Patch: doPatch, api.Create: doCreate, api.Delete: doDelete}
	phaseOf = map[api.Phase]int{
		api.PhasePreparing: preparing, api.PhasePrepared: prepared, api.PhaseCommitting: 4, api.PhaseRollingBack: 5,
		api.PhaseCommitted: 6, api.PhaseRolledBack: 7, api.PhaseFailed: 8,
	}
	itemStateOf = map[api.ItemState]int{
		api.ItemPending: 0, api.ItemPrepared: 1, api.ItemCommitting: 2, api.ItemCommitted: 3, api.ItemRollingBack: 4,
		api.ItemRolledBack: 5, api.ItemRejected: 6, api.ItemUnresolved: 7,
	}
)

// String has a line for each event.
func (t Trace) String() string {
	var out strings.Builder
	for n, e := range t.Events {
		fmt.Fprintf(&out, "%3d %+v\n", n, e)
	}
	return out.String()
}
