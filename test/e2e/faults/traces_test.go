package faults

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/oracle"
	"janus.io/janus/test/protocol"
)

// TestTheModelHasARunWithEveryRealTrace runs plans of Transactions of two changes, as TestPlans does, and
// asks the model of the protocol for a run with what the API server has stored.
func TestTheModelHasARunWithEveryRealTrace(t *testing.T) {
	model, err := protocol.Build(t.Context(), t.TempDir())
	require.NoError(t, err)
	w := newWorld(t)
	var mu sync.Mutex
	var names []string
	var traces []protocol.Trace
	beyond := map[string]int{}
	w.keep = func(p scenario, e oracle.Evidence) {
		mu.Lock()
		defer mu.Unlock()
		trace, err := protocol.Project(e, protocol.Circumstances{})
		if err != nil {
			beyond[err.Error()]++
			return
		}
		names, traces = append(names, p.String()), append(traces, trace)
	}
	var all []scenario
	for _, of := range workloads(t) {
		if slices.Contains([]string{"create-refused", "delete-refused", "patch-refused"}, of.Name) {
			all = append(all, slices.DeleteFunc(w.plans(of), isBeyondTheModel)...)
		}
	}
	require.NotEmpty(t, all)
	w.runAll(t, sample(all, *sampleOf))
	began := time.Now()
	verdicts, _, err := model.Judge(t.Context(), traces)
	require.NoError(t, err)
	events := 0
	for n, v := range verdicts {
		events += v.Of
		assert.True(t, v.Accepted(), "the model has no run with the trace of %s: it comes to event %d of\n%s", names[n], v.Events, traces[n])
	}
	t.Logf("%d traces, %d events, judged in %s; beyond the model: %v", len(verdicts), events, time.Since(began).Round(time.Millisecond), beyond)
}

// isBeyondTheModel reports whether something happens for which the model has no part: a false answer to
// a read, or an act of another client that is not a write of a target.
func isBeyondTheModel(p scenario) bool {
	what := p.events[0].what
	if isAct(what) {
		return !strings.HasPrefix(what, "foreign-field")
	}
	return slices.Contains([]faultinject.Fault{faultinject.Stale, faultinject.FalseNotFound}, faultinject.Fault(what))
}
