package simulation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/oracle"
)

var dependants = flag.Int("dependants", 120, "how many runs of Transactions that are rolled back and whose changes depend on each other")

// web is a Widget whose Pods mount alpha and read delta.
var web = thing{widget, "web"}

func webChange() api.Change {
	c := web.change(api.Create, nil)
	c.Content = raw(map[string]any{"data": web.data(old), "spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"volumes":    []any{map[string]any{"name": "v", "configMap": map[string]any{"name": "alpha"}}},
		"containers": []any{map[string]any{"name": "web", "envFrom": []any{map[string]any{"secretRef": map[string]any{"name": "delta"}}}}},
	}}}})
	return c
}

// dependency is a Transaction that is rolled back, of changes of which many depend on others: by
// dependsOn, or in a list by what they refer to. Some are undone, or begin, with others' objects.
func dependency(random *rand.Rand) scenario {
	s := scenario{name: "dependency"}
	exists := map[thing]bool{}
	for _, t := range pool {
		if exists[t] = random.IntN(2) == 0; exists[t] {
			s.objects = append(s.objects, t.with(old))
		}
	}
	spec := api.TransactionSpec{ServiceAccountName: "deployer"}
	for n, i := range random.Perm(len(pool))[:2+random.IntN(3)] {
		spec.Changes = append(spec.Changes, effective(drawChange(random, pool[i], exists, n), pool[i]))
	}
	if random.IntN(2) == 0 {
		spec.Changes = append(spec.Changes, webChange())
	}
	if random.IntN(4) == 0 {
		t := pool[random.IntN(len(pool))]
		spec.Changes = append(spec.Changes, effective(drawChange(random, t, exists, 9), t))
	}
	for n := range spec.Changes {
		spec.Changes[n].Name = fmt.Sprintf("c%d", n)
	}
	if random.IntN(2) == 0 {
		depend(random, &spec)
	} else {
		for n := range spec.Changes {
			if n > 0 && random.IntN(2) == 0 {
				spec.Changes[n].When = fmt.Sprintf("objects.c%d != null || object == null || object != null", random.IntN(n))
			}
		}
	}
	last := thing{configMap, "refused"}.change(api.Create, old)
	last.Name = "last"
	for n := range spec.Changes {
		if len(spec.Changes[n].DependsOn) > 0 || spec.Order == api.OrderGraph {
			last.DependsOn = append(last.DependsOn, spec.Changes[n].Name)
		}
	}
	spec.Changes = append(spec.Changes, last)
	if random.IntN(6) == 0 {
		spec.ConflictPolicy = api.ConflictForce
	}
	s.transactions = []api.TransactionSpec{spec}
	return s
}

// effective has a change that sets nothing set something. That one which alters nothing was made
// shows in no write, and so neither does that what depends on it came after it.
func effective(c api.Change, t thing) api.Change {
	if c.Content != nil && strings.Contains(string(c.Content.Raw), `"data":{}`) {
		c.Content = t.change(c.Type, map[string]string{"a": "new"}).Content
	}
	return c
}

// meddling is what keeps items from being rolled back, and has that tried again, once changes are
// made: what happens before that ends the Transaction before anything depends on anything.
func meddling() []act {
	out := []act{
		{"recover", func(a *actors) error {
			return a.merge(a.txn(), "somebody", map[string]any{"metadata": map[string]any{"annotations": map[string]any{api.RecoverAnnotation: a.fresh("again")}}})
		}},
		{"give rights", func(a *actors) error { a.may = true; return nil }},
	}
	for _, one := range acts {
		if slices.Contains([]string{"annotate", "write", "claim", "delete", "replace", "take rights", "crash", "cancel"}, one.name) {
			out = append(out, one)
		}
	}
	for i := range out {
		do := out[i].do
		out[i].do = func(a *actors) error {
			if !a.begun() {
				return nil
			}
			return do(a)
		}
	}
	return out
}

// begun reports whether the first Transaction has begun to make its changes.
func (a *actors) begun() bool {
	t := a.world.transaction(transactionName(0))
	if t == nil {
		return false
	}
	phase, _, _ := unstructured.NestedString(t.Object, "status", "phase")
	return phase == string(api.PhaseCommitting) || phase == string(api.PhaseRollingBack) || phase == string(api.PhaseFailed)
}

// readAsOwner tells what is known and has nothing to do with what depends on what: before an object
// is deleted that may own others, the ServiceAccount lists what has owners, and reads those owners
// that it could not list. Leases and before-images have the Transaction as their owner.
func readAsOwner(breach string) bool {
	return strings.HasPrefix(breach, oracle.Identity+": GET transactions/") && strings.Contains(breach, "which is Janus' own, and was made as")
}

// TestWhatDependsOnAnItemIsRolledBackBeforeIt rolls Transactions back whose changes depend on each
// other while others write their targets, processes crash, and recoveries are asked for.
func TestWhatDependsOnAnItemIsRolledBackBeforeIt(t *testing.T) {
	t.Parallel()
	blocked, ends := 0, map[string]int{}
	for n := range *dependants {
		seed := *first + uint64(n)
		random := source(seed, 6)
		p := script{
			seed: seed, scenario: dependency(random), machines: 1 + random.IntN(3)/2, chaotic: 60 + random.IntN(240),
			faultRate: []float64{0, 0, 0.01, 0.03}[random.IntN(4)], actRate: []float64{0.01, 0.03, 0.1}[random.IntN(3)], acts: meddling(),
			keepTrace: *dependants == 1,
		}
		o := simulate(t, p)
		if p.keepTrace {
			t.Log(strings.Join(o.trace, "\n"))
		}
		assert.Empty(t, slices.DeleteFunc(o.breaches, readAsOwner), "seed %d: %s", seed, o)
		ends[o.phases[0]]++
		if strings.Contains(strings.Join(o.causes, " "), "stays as the change made it") {
			blocked++
		}
	}
	t.Logf("%d runs, by end %v; in %d an item was Blocked", *dependants, ends, blocked)
	assert.True(t, blocked > 0 || *dependants < 30, "no run has come to what it is for")
}
