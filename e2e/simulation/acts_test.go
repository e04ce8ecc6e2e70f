package simulation

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/chaos"
)

// while is for how many steps what somebody has taken away is missing.
const while = 20

// TestSmallWorkloadsMeetEveryAct lets somebody act, in each small workload, before every
// step that it makes, and right after every fault of a write to its targets: that is
// when Janus knows least. With -every=1 it tries them all.
func TestSmallWorkloadsMeetEveryAct(t *testing.T) {
	for number, s := range small() {
		t.Run(s.name, func(t *testing.T) {
			s = cancelled(s)
			healthy := simulate(t, plan{scenario: s, seed: 1})
			require.Empty(t, healthy.breaches, healthy.String())
			n, runs := number, 0 // the workloads share what is left out
			try := func(a act, when func(*world) bool, injections ...chaos.Injection) {
				if n++; n%*every != 0 {
					return
				}
				o := simulate(t, plan{scenario: s, seed: uint64(n), choose: meeting(a, when), injections: injections}) //nolint:gosec // a count of runs
				assert.Empty(t, o.breaches, "%s, number %d, %s after %v: %s", s.name, n, a.name, injections, o)
				runs++
			}
			for _, a := range some {
				for step := range healthy.steps {
					try(a, func(w *world) bool { return w.step >= step })
				}
				each(written(healthy.calls), -1, func(one chaos.Injection) {
					if late := one.Fault == chaos.Late || one.Fault == chaos.LateAfterRestart; late && hopeless[a.name] {
						return
					}
					try(a, func(w *world) bool { return len(w.line.Missed()) == 0 }, one)
				})
			}
			t.Logf("%d runs", runs)
		})
	}
}

// some are the acts that are tried at every step. The others are left to random
// Transactions: what Janus owes to somebody who deletes a target or takes rights away
// in the middle of a step is not settled.
var some = slices.DeleteFunc(append(slices.Clone(acts), rewrite), func(a act) bool {
	return slices.Contains([]string{"delete", "replace", "take rights"}, a.name)
})

// hopeless are the acts after which an item is given up at once. A request for it that
// lands late then meets a Transaction that has ended.
var hopeless = map[string]bool{"delete ServiceAccount": true, "tamper": true}

// rewrite changes what a Transaction is to do, which the API server refuses.
var rewrite = act{"rewrite spec", func(a *actors) error {
	spec := a.world.plan.scenario.transactions[0]
	var changes []any
	for _, c := range spec.Changes {
		if c.Content != nil {
			c.Content = raw(map[string]any{"data": map[string]any{"a": encode(a.fresh("rewritten"))}})
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
		if err != nil {
			return err
		}
		changes = append(changes, content)
	}
	return a.merge(a.txn(), "somebody", map[string]any{"spec": map[string]any{"changes": changes}})
}}

// cancelled is a scenario in which a Transaction that is deleted is taken back.
func cancelled(s scenario) scenario {
	s.transactions = slices.Clone(s.transactions)
	for i := range s.transactions {
		s.transactions[i].OnDelete = api.DeleteRollback
	}
	return s
}

// written are the calls that change a target.
func written(calls []chaos.Call) []chaos.Call {
	return slices.DeleteFunc(slices.Clone(calls), func(c chaos.Call) bool {
		return c.User == "" || c.Kind != chaos.Write || c.DryRun
	})
}

// meeting has somebody act once, and makes good what can be made good a little later.
func meeting(a act, when func(*world) bool) func(*world, []*held) *held {
	acted := -1
	return func(w *world, ready []*held) *held {
		switch {
		case acted < 0 && when(w):
			acted = w.step
			err := a.do(w.actors)
			w.note("somebody: %s (%v)", a.name, err)
		case acted >= 0 && !w.restored && w.step >= acted+while:
			w.actors.restore()
			w.restored, w.lastFault = true, w.line.Count()
		}
		return ready[0]
	}
}

// TestSmallWorkloadsBearWritesOfStatus has a controller write the status of a target
// before any step. That is no conflict, and changes nothing about the end.
func TestSmallWorkloadsBearWritesOfStatus(t *testing.T) {
	status := acts[slices.IndexFunc(acts, func(a act) bool { return a.name == "status" })]
	for _, s := range small() {
		if s.targets()[0].Kind != widget.Kind {
			continue
		}
		healthy := simulate(t, plan{scenario: s, seed: 1})
		for step := range healthy.steps {
			o := simulate(t, plan{scenario: s, seed: 1, choose: meeting(status, func(w *world) bool { return w.step >= step })})
			assert.Empty(t, o.breaches, "%s, at step %d: %s", s.name, step, o)
			assert.Equal(t, healthy.phases, o.phases, "%s, at step %d: %s", s.name, step, o)
		}
	}
}
