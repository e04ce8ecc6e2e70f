package defects

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// modelRefuses are some of the defects with which Janus does what the model of the protocol does not.
const modelRefuses = "undone-only-if-recorded,intent-not-taken-over,undo-in-list-order,unresolved-counts-as-rolled-back,final-phase-first,conflicts-overwritten"

// TestTheModelRefusesTracesOfDefects seeds defects, and asks the model of the protocol for runs with the
// traces that the simulation then makes. It builds the simulation for each, and needs spin.
func TestTheModelRefusesTracesOfDefects(t *testing.T) {
	b := newBench(t)
	s := stage{simulation, "test/e2e/simulation", []string{"-test.run=TestTheModelHasARunWithEveryTrace", "-thinned=8"}}
	b.mustBeClean(t, s)
	for _, d := range named(t, modelRefuses) {
		t.Run(d.Name, func(t *testing.T) {
			output, passed := b.run(t, s, d.overlay(t))
			assert.False(t, passed)
			assert.Contains(t, output, "the model has no run with the trace of")
		})
	}
}
