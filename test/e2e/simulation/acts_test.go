package simulation

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
)

// while is for how many steps what another client has taken away is missing.
const while = 20

// TestSmallWorkloadsMeetEveryAct lets another client act, in each small workload, before
// every step that it makes, and right after every fault of a write to its targets: that
// is when Janus knows least. With -every=1 it tries them all.
func TestSmallWorkloadsMeetEveryAct(t *testing.T) {
	t.Parallel()
	for number, s := range small() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s = cancelled(s)
			healthy := simulate(t, script{scenario: s, seed: 1})
			require.Empty(t, healthy.breaches, healthy.String())
			n, runs := number, 0 // the workloads share what is left out
			try := func(a act, when func(*world) bool, injections ...faultinject.Injection) {
				if n++; n%*every != 0 {
					return
				}
				o := simulate(t, script{scenario: s, seed: uint64(n), choose: meeting(a, when), injections: injections}) //nolint:gosec // a count of runs
				assert.Empty(t, o.breaches, "%s, number %d, %s after %v: %s", s.name, n, a.name, injections, o)
				runs++
			}
			for _, a := range some {
				for step := range healthy.steps {
					try(a, func(w *world) bool { return w.step >= step })
				}
				each(written(healthy.calls), -1, func(one faultinject.Injection) {
					if late := one.Fault == faultinject.Late || one.Fault == faultinject.LateAfterRestart; late && hopeless[a.name] {
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
// Transactions: what Janus owes to a client that deletes a target or takes rights
// away in the middle of a step is not settled.
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

// cancelled is a scenario in which a Transaction that is deleted is rolled back.
func cancelled(s scenario) scenario {
	s.transactions = slices.Clone(s.transactions)
	for i := range s.transactions {
		s.transactions[i].OnDelete = api.DeleteRollback
	}
	return s
}

// written are the calls that change a target.
func written(calls []faultinject.Call) []faultinject.Call {
	return slices.DeleteFunc(slices.Clone(calls), func(c faultinject.Call) bool {
		return c.User == "" || c.Kind != faultinject.Write || c.DryRun
	})
}

// meeting has another client act once, and makes good what can be made good a little later.
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
			w.restored = true
			w.faultsAreOver()
		}
		return ready[0]
	}
}

// TestSmallWorkloadsLoseRightsAfterADeletion takes the rights away, for a while, right
// after a target is gone that a Transaction deletes: it was told that it has deleted it,
// and is not told any more that it is gone.
func TestSmallWorkloadsLoseRightsAfterADeletion(t *testing.T) {
	t.Parallel()
	lose := acts[slices.IndexFunc(acts, func(a act) bool { return a.name == "take rights" })]
	for _, s := range small() {
		target := s.targets()[0]
		if s.transactions[0].Changes[0].Type != api.Delete {
			continue
		}
		resource := resourceOf(schema.FromAPIVersionAndKind(target.APIVersion, target.Kind))
		gone := func(w *world) bool { return w.server.Get(resource, namespace, target.Name) == nil }
		o := simulate(t, script{scenario: s, seed: 1, choose: meeting(lose, gone)})
		assert.Empty(t, o.breaches, "%s: %s", s.name, o)
	}
}

// TestSmallWorkloadsBearWritesOfStatus has a controller write the status of a target
// before any step. That is no conflict, and changes nothing about the end.
func TestSmallWorkloadsBearWritesOfStatus(t *testing.T) {
	t.Parallel()
	status := acts[slices.IndexFunc(acts, func(a act) bool { return a.name == "status" })]
	for _, s := range small() {
		if s.targets()[0].Kind != widget.Kind {
			continue
		}
		healthy := simulate(t, script{scenario: s, seed: 1})
		for step := range healthy.steps {
			o := simulate(t, script{scenario: s, seed: 1, choose: meeting(status, func(w *world) bool { return w.step >= step })})
			assert.Empty(t, o.breaches, "%s, at step %d: %s", s.name, step, o)
			assert.Equal(t, healthy.phases, o.phases, "%s, at step %d: %s", s.name, step, o)
		}
	}
}

// TestSmallWorkloadsKeepWhatOthersWriteBeside has another client change, before any
// step, an item of a list with keys of which a Transaction has changed another. That
// is no conflict when the change is rolled back.
func TestSmallWorkloadsKeepWhatOthersWriteBeside(t *testing.T) {
	t.Parallel()
	s := beside()
	healthy := simulate(t, script{scenario: s, seed: 1})
	require.Equal(t, []string{string(api.PhaseRolledBack)}, healthy.phases, healthy.String())
	for step := range healthy.steps {
		changed := func(w *world) bool { return w.step >= step && sizeOf(w, "a") == 2 }
		o := simulate(t, script{scenario: s, seed: 1, choose: meeting(resize, changed)})
		assert.Empty(t, o.breaches, "at step %d: %s", step, o)
		assert.Equal(t, healthy.phases, o.phases, "at step %d: %s", step, o)
	}
}

// TestSmallWorkloadsPutItemsBackWhereTheyWere has another client add, before any step, an
// item to a list with keys of which an Update has left out the first.
func TestSmallWorkloadsPutItemsBackWhereTheyWere(t *testing.T) {
	t.Parallel()
	s := beside()
	s.transactions[0].Changes[0].Type = api.Update
	s.transactions[0].Changes[0].Content = raw(map[string]any{"data": old, "parts": []any{part("b", 1)}})
	healthy := simulate(t, script{scenario: s, seed: 1})
	require.Equal(t, []string{string(api.PhaseRolledBack)}, healthy.phases, healthy.String())
	for step := range healthy.steps {
		left := func(w *world) bool { return w.step >= step && len(partsOf(w)) == 1 }
		o := simulate(t, script{scenario: s, seed: 1, choose: meeting(extend, left)})
		assert.Empty(t, o.breaches, "at step %d: %s", step, o)
		assert.Equal(t, healthy.phases, o.phases, "at step %d: %s", step, o)
	}
}

var extend = act{"extend", func(a *actors) error { return a.setParts(append(partsOf(a.world), part("theirs", 9))) }}

// TestSmallWorkloadsLeaveWhatIsMadeInTheirPlace has another client put another object,
// of the same content, in place of the target before any step.
func TestSmallWorkloadsLeaveWhatIsMadeInTheirPlace(t *testing.T) {
	t.Parallel()
	replaced := act{"replace", func(a *actors) error { return a.replace(pool[0].with(nil)) }}
	for _, s := range small() {
		if !strings.HasSuffix(s.name, "back") || s.transactions[0].Changes[0].Target.Name != pool[0].name {
			continue
		}
		healthy := simulate(t, script{scenario: s, seed: 1})
		for step := range healthy.steps {
			o := simulate(t, script{scenario: s, seed: 1, choose: meeting(replaced, func(w *world) bool { return w.step >= step })})
			assert.Empty(t, o.breaches, "%s, at step %d: %s", s.name, step, o)
		}
	}
}

// beside is a Transaction that changes one item of a list with keys, and is rolled back.
func beside() scenario {
	epsilon := pool[4]
	obj := epsilon.with(old)
	obj.Object["parts"] = []any{part("a", 1), part("b", 1)}
	change := epsilon.change(api.Patch, nil)
	change.Content = raw(map[string]any{"parts": []any{part("a", 2)}})
	refused := thing{configMap, "refused"}.change(api.Create, old)
	return scenario{
		name: "beside-back", objects: []*unstructured.Unstructured{obj},
		transactions: []api.TransactionSpec{{ServiceAccountName: "deployer", Changes: []api.Change{change, refused}}},
	}
}

func part(name string, size int64) map[string]any {
	return map[string]any{"name": name, "size": size}
}

// partsOf returns the list as it is.
func partsOf(w *world) []any {
	live := w.server.Get(resourceOf(widget), namespace, pool[4].name)
	if live == nil {
		return nil
	}
	parts, _, _ := unstructured.NestedSlice(live.Object, "parts")
	return parts
}

func sizeOf(w *world, name string) int64 {
	for _, p := range partsOf(w) {
		if one, _ := p.(map[string]any); one["name"] == name {
			size, _ := one["size"].(int64)
			return size
		}
	}
	return 0
}

// resize changes the item of the list that no Transaction changes.
var resize = act{"resize", func(a *actors) error {
	parts := []any{part("a", sizeOf(a.world, "a")), part("b", 9)}
	return a.merge(pool[4].with(nil), "somebody", map[string]any{"parts": parts})
}}
