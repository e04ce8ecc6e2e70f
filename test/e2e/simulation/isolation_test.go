package simulation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/oracle"
)

var contests = flag.Int("contests", 30, "how many runs of Transactions that want the same targets")

// contention is a few Transactions that want the same few objects, each in an order
// of its own: some to change them, some to be guarded by them, some both.
func contention(random *rand.Rand) scenario {
	s := scenario{name: "contention"}
	things := pool[:2+random.IntN(2)]
	for _, t := range things {
		s.objects = append(s.objects, t.with(old))
	}
	for n := range 2 + random.IntN(3) {
		spec := api.TransactionSpec{ServiceAccountName: "deployer"}
		for _, i := range random.Perm(len(things))[:1+random.IntN(len(things))] {
			kind := []api.ChangeType{api.Patch, api.Update}[random.IntN(2)]
			spec.Changes = append(spec.Changes, things[i].change(kind, map[string]string{"a": fmt.Sprintf("new-%d-%d", n, i)}))
		}
		for _, i := range random.Perm(len(things))[:random.IntN(len(things)+1)] {
			spec.Changes = append([]api.Change{guardOf(things[i], "object != null")}, spec.Changes...)
		}
		if random.IntN(4) == 0 {
			spec.Changes = append(spec.Changes, thing{configMap, fmt.Sprintf("refused-%d", n)}.change(api.Create, old))
		}
		s.transactions = append(s.transactions, spec)
	}
	return s
}

// crashes are what happens to processes, and nothing that others do to targets or
// locks: so whatever may commit does.
var crashes = []act{
	{"crash", func(a *actors) error {
		a.world.machines[len(a.world.machines)-1].process.Crash()
		return nil
	}},
	{"freeze", func(a *actors) error {
		a.world.frozen[a.world.random.IntN(len(a.world.machines))] = time.Now().Add(time.Duration(a.world.random.IntN(400)) * time.Second)
		return nil
	}},
}

// TestContendersAreIsolatedAndNoneStarves lets Transactions want the same targets at
// the same time, in different orders, with two processes, faults and crashes. All
// end; those that nothing refuses commit; and those that committed have read and
// written as if they had run one after the other.
func TestContendersAreIsolatedAndNoneStarves(t *testing.T) {
	t.Parallel()
	committed := 0
	for n := range *contests {
		seed := *first + uint64(n)
		random := source(seed, 3)
		p := script{
			seed: seed, scenario: contention(random), machines: 1 + random.IntN(2), chaotic: 40 + random.IntN(400),
			faultRate: []float64{0, 0.02, 0.05}[random.IntN(3)], actRate: []float64{0, 0.01}[random.IntN(2)], acts: crashes, harmless: true,
		}
		o := simulate(t, p)
		assert.Empty(t, o.breaches, "seed %d: %s", seed, o)
		for i, spec := range p.scenario.transactions {
			want := api.PhaseCommitted
			if spec.Changes[len(spec.Changes)-1].Type == api.Create {
				want = api.PhaseRolledBack
			} else {
				committed++
			}
			assert.Equal(t, string(want), o.phases[i], "seed %d: Transaction %d: %s", seed, i, o)
		}
	}
	t.Logf("%d contests, %d Transactions committed", *contests, committed)
}

// isolated judges a run whose locks nobody took away.
func isolated(e oracle.Evidence) (out []string) {
	for _, b := range oracle.Serializable(e) {
		out = append(out, b.Guarantee+": "+b.Message)
	}
	return out
}
