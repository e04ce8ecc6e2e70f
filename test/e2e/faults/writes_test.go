package faults

import (
	"slices"
	"testing"

	"janus.io/janus/test/faultinject"
)

// everyWrite are the workloads of which each write meets a fault in every run of the
// tests, whatever the sample has of them: one change of each type, committed and
// rolled back, and two changes of one object rolled back.
var everyWrite = []string{"mixed", "mixed-refused-4", "chain-refused"}

// TestEveryWriteMeetsAFault lets each write of a few workloads meet one of the faults
// of writes, in turn.
func TestEveryWriteMeetsAFault(t *testing.T) {
	w := newWorld(t)
	var chosen []scenario
	for _, of := range workloads(t) {
		if !slices.Contains(everyWrite, of.Name) {
			continue
		}
		n := 0
		for _, call := range w.learned(of).calls {
			if call.Kind == faultinject.Write {
				fault := faultinject.Writes[n%len(faultinject.Writes)]
				chosen = append(chosen, scenario{workload: of.Name, events: []event{{call.At, string(fault)}}})
				n++
			}
		}
	}
	w.runAll(t, chosen)
}
