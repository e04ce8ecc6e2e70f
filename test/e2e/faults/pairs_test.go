package faults

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"janus.io/janus/test/faultinject"
)

// perFirst is how many second faults are tried with one first fault: the run with the
// first alone, which says where the second can be, then serves them all.
const perFirst = 4

// TestPairs runs pairs of faults. The seed chooses the first among the plans with one
// fault, and the second among the calls that Janus makes after the first has happened.
func TestPairs(t *testing.T) {
	w := newWorld(t)
	var firsts []scenario
	for _, p := range matching(t, w.enumerate(t)) {
		if !p.foreign() {
			firsts = append(firsts, p)
		}
	}
	require.NotEmpty(t, firsts, "no plan without acts of others matches -only=%s", *onlyFlag)
	byName := map[string]workload{}
	for _, of := range workloads(t) {
		byName[of.Name] = of
	}
	rounds := (max(*pairsFlag, *pairFlag+1) + perFirst - 1) / perFirst
	found := make([][]scenario, rounds)
	var wait sync.WaitGroup
	slots := make(chan struct{}, *atOnce)
	for n := range rounds {
		if *pairFlag >= 0 && n != *pairFlag/perFirst {
			continue
		}
		first := choose(firsts, n, *seedFlag)
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			found[n] = pairsWith(first, w.do(byName[first.workload], first), n*perFirst)
		})
	}
	wait.Wait()
	chosen := slices.Concat(found...)
	if *pairFlag >= 0 {
		require.NotEmpty(t, chosen, "pair %d has no second fault: its first one is at the last call", *pairFlag)
		chosen[0].named = true
		w.runAll(t, chosen)
		return
	}
	w.runAll(t, share(t, chosen[:min(len(chosen), *pairsFlag)]))
}

// pairsWith adds second faults to a first one, at calls that came after it. The pairs
// are numbered from a number on.
func pairsWith(first scenario, alone result, from int) []scenario {
	at := -1
	var after []faultinject.Call
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
	seconds := slices.DeleteFunc(faultsIn(first.workload, after), func(p scenario) bool { return refusesTwice(first.events[0], p.events[0]) })
	var out []scenario
	for n := from; n < from+perFirst; n++ {
		if *pairFlag >= 0 && n != *pairFlag {
			continue
		}
		second := choose(seconds, n, *seedFlag)
		p := scenario{workload: first.workload, events: []event{first.events[0], second.events[0]}}
		p.drawn = fmt.Sprintf("    or: go test ./test/e2e/faults -run TestPairs -pair=%d -seed=%d", n, *seedFlag)
		out = append(out, p)
	}
	return out
}

// refusesTwice reports whether a request is forbidden, and its repetition as well, by a
// server that is ready. Nobody can tell that from a refusal that is meant.
func refusesTwice(first, second event) bool {
	return first.what == string(faultinject.Started) && second.what == first.what &&
		second.at == faultinject.At{Key: first.at.Key, Nth: first.at.Nth + 1}
}
