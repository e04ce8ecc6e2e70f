package simulation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
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
		m := a.world.random.IntN(len(a.world.machines))
		a.world.standStill(m, time.Duration(a.world.random.IntN(400))*time.Second)
		return nil
	}},
}

// TestContendersAreIsolatedAndNoneStarves lets Transactions want the same targets at
// the same time, in different orders, with two processes, faults and crashes. All
// end. Unless a process was away for so long that others took its locks, those that nothing
// refuses commit, and those that committed have read and written as if they had run one after
// the other.
func TestContendersAreIsolatedAndNoneStarves(t *testing.T) {
	t.Parallel()
	var kept, committed atomic.Int64
	var workers sync.WaitGroup
	drawn := make(chan uint64)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range drawn {
				o, done := contest(t, seed)
				committed.Add(int64(done))
				if o.locksKept {
					kept.Add(1)
				}
			}
		})
	}
	for n := range *contests {
		drawn <- *first + uint64(n)
	}
	close(drawn)
	workers.Wait()
	t.Logf("%d contests, %d Transactions committed in the %d in which no process was away for long", *contests, committed.Load(), kept.Load())
}

// contest runs and judges one. It returns how many Transactions had to commit.
func contest(t *testing.T, seed uint64) (o outcome, committed int) {
	t.Helper()
	random := source(seed, 3)
	p := script{
		seed: seed, scenario: contention(random), machines: 1 + random.IntN(2), chaotic: 40 + random.IntN(400),
		faultRate: []float64{0, 0.02, 0.05}[random.IntN(3)], actRate: []float64{0, 0.01}[random.IntN(2)], acts: crashes, harmless: true,
		keepTrace: *contests == 1,
	}
	o = simulate(t, p)
	if p.keepTrace {
		t.Log(strings.Join(o.trace, "\n"))
	}
	assert.Empty(t, o.breaches, "seed %d: %s", seed, o)
	for i, spec := range p.scenario.transactions {
		if !o.locksKept {
			assert.True(t, api.Phase(o.phases[i]).Terminal(), "seed %d: Transaction %d: %s", seed, i, o)
			continue
		}
		want := api.PhaseCommitted
		if spec.Changes[len(spec.Changes)-1].Type == api.Create {
			want = api.PhaseRolledBack
		} else {
			committed++
		}
		assert.Equal(t, string(want), o.phases[i], "seed %d: Transaction %d: %s", seed, i, o)
	}
	return o, committed
}

// lockTimeout is the default, which the Transactions here have.
const lockTimeout = 5 * time.Minute

// standStill has a machine stand still for a while. One that was awake for less than a minute since it
// last did may not have renewed its locks: it has been away all the time.
func (w *world) standStill(m int, d time.Duration) {
	now := time.Now()
	if now.Sub(w.frozen[m]) > time.Minute {
		w.since[m] = now
	}
	w.frozen[m] = now.Add(d)
	w.away = max(w.away, w.frozen[m].Sub(w.since[m]))
}

// locksKept reports whether each machine was there in time to renew its locks, which it does when a
// quarter of lockTimeout is over.
func (w *world) locksKept() bool { return w.away < lockTimeout*3/4-time.Minute }

// isolated judges a run whose locks nobody took away.
func isolated(e oracle.Evidence) (out []string) {
	for _, b := range oracle.Serializable(e) {
		out = append(out, b.Guarantee+": "+b.Message)
	}
	return out
}
