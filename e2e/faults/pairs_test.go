package faults

import (
	"math/rand/v2"
	"sync"
	"testing"

	"janus.io/janus/internal/chaos"
)

// seconds is how many second faults are tried with one first fault: the run with the
// first alone, which says where the second can be, then serves them all.
const seconds = 4

// TestPairs runs pairs of faults. The seed chooses the first among the plans with one
// fault, and the second among the calls that Janus makes after the first has happened.
func TestPairs(t *testing.T) {
	w := newWorld(t)
	var firsts []plan
	for _, p := range matching(t, w.enumerate(t)) {
		if !p.foreign() {
			firsts = append(firsts, p)
		}
	}
	source := rand.New(rand.NewPCG(uint64(*seedFlag), 0)) //nolint:gosec // the seed is what makes a run repeatable
	byName := map[string]workload{}
	for _, of := range workloads(t) {
		byName[of.Name] = of
	}
	var chosen []plan
	var mu sync.Mutex
	var wait sync.WaitGroup
	slots := make(chan struct{}, *atOnce)
	for range (*pairsFlag + seconds - 1) / seconds {
		first := firsts[source.IntN(len(firsts))]
		choice := rand.New(rand.NewPCG(uint64(*seedFlag), source.Uint64())) //nolint:gosec // as above
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			pairs := pairsWith(first, w.do(byName[first.workload], first), choice)
			mu.Lock()
			defer mu.Unlock()
			chosen = append(chosen, pairs...)
		})
	}
	wait.Wait()
	w.runAll(t, share(t, chosen[:min(len(chosen), *pairsFlag)]))
}

// pairsWith adds second faults to a first one, at calls that came after it.
func pairsWith(first plan, alone result, choice *rand.Rand) []plan {
	at := -1
	var after []chaos.Call
	for i, call := range alone.calls {
		if call.At == first.events[0].at {
			at = i
		}
		if at >= 0 && i > at && len(call.Faults()) > 0 {
			after = append(after, call)
		}
	}
	if len(after) == 0 {
		return nil // it was the last call
	}
	var out []plan
	for range seconds {
		call := after[choice.IntN(len(after))]
		faults := call.Faults()
		second := event{call.At, string(faults[choice.IntN(len(faults))])}
		out = append(out, plan{first.workload, []event{first.events[0], second}})
	}
	return out
}
