// Package simulation runs the real engine, with all that works for it, on a model
// of the API server, in virtual time: one seed, one order of events. What takes too
// long on a real API server is tried here: every pair of faults, two processes in
// every order, and random Transactions among random faults and writers by the
// hundred thousand. The model is held against the real one by its own tests.
package simulation

import (
	"flag"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/faultinject"
)

var (
	every  = flag.Int("every", 48, "run every so many-th of the single faults, and of the orders of two processes")
	deep   = flag.Bool("deep", false, "run the pairs of faults too")
	replay = flag.String("plan", "", "the one plan of a small workload to run, as a failure names it")
)

// What a seed has shown once it must show again, or nobody could look into it.
func TestOneSeedGivesOneTrace(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		p := seeded(seed)
		p.keepTrace = true
		once, again := simulate(t, p), simulate(t, p)
		require.NotEmpty(t, once.trace)
		for i, line := range once.trace {
			require.Equal(t, line, again.trace[min(i, len(again.trace)-1)], "seed %d", seed)
		}
	}
}

// TestSmallWorkloadsMeetEveryFault runs each small workload once for every fault at
// every request that it makes, with -every=1, and with -deep for every pair of faults
// of which the second comes after the first. With -plan it runs that plan alone.
func TestSmallWorkloadsMeetEveryFault(t *testing.T) {
	t.Parallel()
	if *replay != "" {
		runAgain(t, *replay)
		return
	}
	var faults atomic.Int64
	t.Cleanup(func() { t.Logf("%d single faults in all", faults.Load()) })
	for _, s := range small() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			healthy := healthyRun(t, s)
			n, singles, pairs := 0, 0, 0
			each(healthy.calls, -1, func(one faultinject.Injection) {
				if n++; n%*every != 0 {
					return
				}
				o := runOne(t, s, healthy.phases[0], one)
				singles++
				if !*deep {
					return
				}
				each(o.calls, sentOf(o.calls, one.At), func(two faultinject.Injection) {
					runOne(t, s, healthy.phases[0], one, two)
					pairs++
				})
			})
			t.Logf("%d single faults, %d pairs", singles, pairs)
			faults.Add(int64(singles))
		})
	}
}

// healthyRun runs a workload without a fault.
func healthyRun(t *testing.T, s scenario) outcome {
	t.Helper()
	healthy := simulate(t, script{scenario: s, seed: 1})
	require.Empty(t, healthy.breaches, healthy.String())
	require.Equal(t, string(s.end()), healthy.phases[0], healthy.String())
	return healthy
}

// each calls do with every fault at every call to a resource that was sent after a
// position.
func each(calls []faultinject.Call, after int, do func(faultinject.Injection)) {
	for _, c := range calls {
		if c.Resource == "" || c.Sent <= after {
			continue
		}
		for _, f := range c.Faults() {
			do(faultinject.Injection{At: c.At, Fault: f})
		}
	}
}

func sentOf(calls []faultinject.Call, at faultinject.At) int {
	for _, c := range calls {
		if c.At == at {
			return c.Sent
		}
	}
	return 0
}

// runOne runs a workload with faults. A fault may change how it ends only if it
// denies what is there, or is the second to forbid what is allowed.
func runOne(t *testing.T, s scenario, phase string, injections ...faultinject.Injection) outcome {
	t.Helper()
	name := nameOf(s, injections)
	denied, forbidden := false, 0
	for _, in := range injections {
		denied = denied || in.Fault == faultinject.FalseNotFound || in.Fault == faultinject.Stale
		if in.Fault == faultinject.Starting || in.Fault == faultinject.Started {
			forbidden++
		}
	}
	o := simulate(t, script{scenario: s, seed: 1, injections: injections, keepTrace: *replay != ""})
	if *replay != "" {
		t.Log(strings.Join(o.trace, "\n"))
	}
	for _, in := range injections {
		assert.True(t, met(o.calls, in), "%s: nothing has happened at %s", name, in.At)
	}
	assert.Empty(t, o.breaches, "%s: %s", name, o)
	if !denied && forbidden < 2 {
		assert.Equal(t, phase, o.phases[0], name)
	}
	return o
}

// TestTwoProcessesInEveryOrder lets two processes work on one Transaction without
// leader election. One runs until some step, then the other until some step, then
// the first again: with -every=1 for every pair of steps.
func TestTwoProcessesInEveryOrder(t *testing.T) {
	t.Parallel()
	for _, s := range small() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			healthy := simulate(t, script{scenario: s, seed: 1})
			runs := 0
			for i := 0; i < healthy.steps; i += *every {
				for j := 1; j <= healthy.steps; j += *every {
					p := script{scenario: s, seed: 1, machines: 2, choose: switching(i, i+j)}
					o := simulate(t, p)
					assert.Empty(t, o.breaches, "%s, switched at %d and %d: %s", s.name, i, i+j, o)
					assert.Equal(t, healthy.phases, o.phases, "%s, switched at %d and %d", s.name, i, i+j)
					runs++
				}
			}
			t.Logf("%d orders", runs)
		})
	}
}

// switching prefers the requests of one process, from step i on those of the other,
// and from step j on those of the first again.
func switching(i, j int) func(*world, []*held) *held {
	return func(w *world, ready []*held) *held {
		preferred := 0
		if w.step >= i && w.step < j {
			preferred = 1
		}
		for _, h := range ready {
			if h.process == preferred {
				return h
			}
		}
		return ready[0]
	}
}
