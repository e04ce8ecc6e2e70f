package simulation

import (
	"flag"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/protocol"
)

var thinned = flag.Int("thinned", 1, "ask the model of the protocol for one of so many traces only")

// TestTheModelHasARunWithEveryTrace runs Transactions of the size of the model of the protocol, and lets
// happen to them what can happen in it. The model is to have a run with what has come into effect, each
// line of it is to be on one of these runs, and it is to have none with a trace that nobody has made.
func TestTheModelHasARunWithEveryTrace(t *testing.T) {
	model, err := protocol.Build(t.Context(), t.TempDir())
	require.NoError(t, err)
	runs, chosen := modelled(t), []modelledRun(nil)
	for n := 0; n < len(runs); n += *thinned {
		chosen = append(chosen, runs[n])
	}
	recorded := record(t, chosen)
	began := time.Now()
	verdicts, covered, err := model.Judge(t.Context(), recorded.traces)
	require.NoError(t, err)
	events := 0
	for n, v := range verdicts {
		events += v.Of
		assert.True(t, v.Accepted(), "the model has no run with the trace of %s: it comes to event %d of\n%s", recorded.names[n], v.Events, recorded.traces[n])
	}
	t.Logf("%d traces, %d events, judged in %s; beyond the model: %v", len(verdicts), events, time.Since(began).Round(time.Millisecond), recorded.beyond)
	if *thinned > 1 {
		return // They do not come everywhere.
	}
	for _, line := range slices.Sorted(maps.Keys(covered)) {
		_, known := neverTraced[line]
		assert.Equal(t, !known, covered[line], "whether a trace has a run that comes to the line %q of saga.pml", line)
	}
	refuseChanged(t, model, recorded.traces)
}

// neverTraced are the lines of the model to which no trace leads, and why.
var neverTraced = map[string]string{
	":: t.phase == PREPARED -> next(); nx.phase = COMMITTING; open(); goto store /* committing.begin */": "it was suspended, which another client writes into the Transaction",
	":: tgt[i].uid == 0 -> goto start": "another client makes what is to be created, and deletes it between two requests",
	// prepare, forgetimages
	"images[x].stored = 0;": "a process hangs between two reads, until another has waited for late requests",
	"images[x].uid[0] = 0; images[x].n[0] = 0; images[x].val[0] = 0;": "the same",
	"images[x].uid[1] = 0; images[x].n[1] = 0; images[x].val[1] = 0":  "the same",
}

// edits are what is changed in a trace, at an event where it can be.
var edits = []struct {
	name string
	at   func(events []protocol.Event, i int) bool
	do   func(events []protocol.Event, i int) []protocol.Event
}{
	{
		"a write of a target left out",
		func(events []protocol.Event, i int) bool { return events[i].IsWrite() },
		func(events []protocol.Event, i int) []protocol.Event { return slices.Delete(events, i, i+1) },
	},
	{
		"a write of a target and one of the status swapped",
		func(events []protocol.Event, i int) bool {
			return i > 0 && (events[i-1].IsStatus() && events[i].IsWrite() || events[i-1].IsWrite() && events[i].IsStatus())
		},
		func(events []protocol.Event, i int) []protocol.Event {
			events[i-1], events[i] = events[i], events[i-1]
			return events
		},
	},
	{
		"another value in a target",
		func(events []protocol.Event, i int) bool { return events[i].IsWrite() },
		func(events []protocol.Event, i int) []protocol.Event {
			events[i].Value = (events[i].Value + 1) % 4
			return events
		},
	},
	{
		"another state of an item",
		func(events []protocol.Event, i int) bool { return events[i].IsStatus() },
		func(events []protocol.Event, i int) []protocol.Event {
			events[i].State1 = (events[i].State1 + 1) % 8
			return events
		},
	},
}

// refuseChanged changes every third trace at one event, and expects the model to have no run with more than
// nine of ten. It lets more happen than the engine does, so it has one with some.
func refuseChanged(t *testing.T, model *protocol.Model, traces []protocol.Trace) {
	t.Helper()
	for _, edit := range edits {
		var changed []protocol.Trace
		for n := 0; n < len(traces); n += 3 {
			of := traces[n]
			of.Events = slices.Clone(of.Events)
			var places []int
			for i := range of.Events {
				if edit.at(of.Events, i) {
					places = append(places, i)
				}
			}
			if len(places) > 0 {
				of.Events = edit.do(of.Events, places[n/3%len(places)])
				changed = append(changed, of)
			}
		}
		verdicts, _, err := model.Judge(t.Context(), changed)
		require.NoError(t, err)
		refused := 0
		for _, v := range verdicts {
			if !v.Accepted() {
				refused++
			}
		}
		t.Logf("%s: %d of %d refused", edit.name, refused, len(changed))
		assert.Greater(t, 10*refused, 9*len(changed), edit.name)
	}
}

// recording are traces, and what each is of.
type recording struct {
	names  []string
	traces []protocol.Trace
	beyond map[string]int // runs for which the model has no part, by why
}

// record makes the traces of runs, in their order.
func record(t *testing.T, runs []modelledRun) recording {
	t.Helper()
	traces, failures := make([]protocol.Trace, len(runs)), make([]error, len(runs))
	var workers sync.WaitGroup
	share := runtime.GOMAXPROCS(0)
	for worker := range share {
		workers.Go(func() {
			for n := worker; n < len(runs); n += share {
				traces[n], failures[n] = runs[n].trace(t)
			}
		})
	}
	workers.Wait()
	out := recording{beyond: map[string]int{}}
	for n, r := range runs {
		if err := failures[n]; err != nil {
			out.beyond[err.Error()]++
			continue
		}
		out.names, out.traces = append(out.names, r.name), append(out.traces, traces[n])
	}
	return out
}

func (r modelledRun) trace(t *testing.T) (protocol.Trace, error) {
	t.Helper()
	o := simulate(t, r.script)
	c := protocol.Circumstances{
		Processes: r.machines, Slot: func(process int) int { return process % max(1, r.machines) },
		Window: windows[r.seed%uint64(len(windows))], Overdue: r.hangs,
	}
	if r.hangs {
		c.GivenUp = 1 // It does not send what it was about to.
	}
	return protocol.Project(o.evidence, c)
}
