package faults

import (
	"fmt"
	"sync"
	"testing"

	"janus.io/janus/test/faultinject"
)

// TestContendersAreIsolatedAndNoneStarves lets Transactions want the same targets at
// the same time: two of them in every order, and three or four in orders that the seed
// draws, with one process of Janus and with two. Each contest is run as it is, and with
// a fault at one of the calls that this has shown. All Transactions end; those that
// nothing refuses commit; and those that have committed have read and written as if
// they had run one after the other.
func TestContendersAreIsolatedAndNoneStarves(t *testing.T) {
	w := newWorld(t)
	var numbers []int
	for n := range *contests {
		numbers = append(numbers, n)
	}
	if *contest >= 0 {
		numbers = []int{*contest}
	}
	w.learnContests(t, numbers)
	var chosen []scenario
	for _, n := range numbers {
		of := contestOf(contestNumbered(n, *seedFlag)).workload()
		if p := choose(faultsIn(of.Name, w.learned(of).calls), n, *seedFlag); len(p.events) > 0 {
			p.drawn = fmt.Sprintf("    or: go test ./test/e2e/faults -run TestContenders -contest=%d -seed=%d", n, *seedFlag)
			chosen = append(chosen, p)
		}
	}
	w.runAll(t, share(t, chosen))
}

// learnContests runs contests without a fault, each once.
func (w *world) learnContests(t *testing.T, numbers []int) {
	t.Helper()
	var wait sync.WaitGroup
	var mu sync.Mutex
	seen, transactions, calls, most := map[string]bool{}, 0, 0, 0
	slots := make(chan struct{}, *atOnce)
	for _, n := range numbers {
		name := contestNumbered(n, *seedFlag)
		if seen[name] {
			continue
		}
		seen[name] = true
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			out := w.learned(contestOf(name).workload())
			mu.Lock()
			defer mu.Unlock()
			for _, failure := range out.failures {
				t.Errorf("%s: %s\n%s\nreplay: make faults FAULTS_PLAN='%s'", name, failure, describe(out.ended), name)
			}
			transactions, calls, most = transactions+len(out.ended), calls+len(out.calls), max(most, len(out.calls))
		})
	}
	wait.Wait()
	t.Logf("%d contests without a fault, %d Transactions, %d calls, at most %d in one", len(seen), transactions, calls, most)
}

// faultsIn lists the plans with one fault at one of some calls.
func faultsIn(workload string, calls []faultinject.Call) []scenario {
	var out []scenario
	for _, call := range calls {
		for _, fault := range call.Faults() {
			out = append(out, scenario{workload: workload, events: []event{{call.At, string(fault)}}})
		}
	}
	return out
}
