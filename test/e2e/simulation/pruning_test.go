package simulation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
)

var prunings = flag.Int("prunings", 30, "how many runs of Transactions that are remembered at the same time")

// crowd is some Transactions that have nothing to do with each other, but for the history
// of their namespace, of which they want one or a few to be left.
func crowd(random *rand.Rand) scenario {
	s := scenario{name: "crowd"}
	for n := range 4 + random.IntN(4) {
		t := thing{configMap, fmt.Sprintf("own-%d", n)}
		s.objects = append(s.objects, t.with(old))
		limit := int32(1 + random.IntN(3)) //nolint:gosec // it is small
		s.transactions = append(s.transactions, api.TransactionSpec{
			ServiceAccountName: "deployer", RevisionHistoryLimit: &limit,
			Changes: []api.Change{t.change(api.Patch, map[string]string{"a": "new"})},
		})
	}
	return s
}

// TestTransactionsPruneTheHistoryTogether lets Transactions be remembered at the same
// time, with one or two processes, faults and crashes. Whatever becomes of those with whom
// it shares the pruning, each commits, and what is forgotten leaves nothing. One seed gives
// one trace here, too.
func TestTransactionsPruneTheHistoryTogether(t *testing.T) {
	t.Parallel()
	committed, lists, runs := 0, 0, 0
	for n := range *prunings {
		seed := *first + uint64(n)
		random := source(seed, 5)
		p := script{
			seed: seed, scenario: crowd(random), machines: 1 + random.IntN(3)/2, chaotic: 40 + random.IntN(400),
			faultRate: []float64{0, 0, 0.02, 0.05}[random.IntN(4)], actRate: []float64{0, 0.01}[random.IntN(2)], acts: crashes, harmless: true,
			keepTrace: true,
		}
		calm := p.machines == 1 && p.faultRate == 0 && p.actRate == 0
		o := simulate(t, p)
		assert.Empty(t, o.breaches, "seed %d: %s", seed, o)
		for i := range p.scenario.transactions {
			assert.Equal(t, string(api.PhaseCommitted), o.phases[i], "seed %d: Transaction %d: %s", seed, i, o)
		}
		require.Equal(t, o.trace, simulate(t, p).trace, "seed %d", seed)
		if !calm {
			continue
		}
		runs++
		committed += len(o.phases)
		for _, c := range o.calls {
			if c.Resource == "controllerrevisions" && c.Method == http.MethodGet && c.Name == "" {
				lists++
			}
		}
	}
	require.NotZero(t, committed, "in runs in which nothing else happens")
	assert.Less(t, lists, committed+runs, "they are listed once for the first number, and several prune together")
	t.Logf("%d runs; of %d Transactions that nothing disturbed %d lists", *prunings, committed, lists)
}
