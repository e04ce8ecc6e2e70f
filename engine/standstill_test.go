package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// By a mistake a step may change nothing: here no intent is ever opened.
func TestAStepThatChangesNothingIsNotCarriedOutWithoutAPause(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.engine.policy.Window = -1

	result, _ := w.once()

	require.True(t, errclass.Is(result.Err, errclass.NoProgress), "%v\n%s", result.Err, w.transcript())
	require.ErrorContains(t, result.Err, "the step Open was carried out 10 times in a row, and has changed nothing")
	assert.Equal(t, api.PhaseCommitting, phaseOf(w))
	assert.Equal(t, errclass.NoProgress, meta.FindStatusCondition(w.stored.Status.Conditions, api.ConditionReconciling).Reason)
	calls := w.calls
	result, _ = w.once()
	require.True(t, errclass.Is(result.Err, errclass.NoProgress))
	assert.False(t, result.Progressed, "the back-off grows")
	assert.Less(t, w.calls-calls, 25)

	t.Run("the way out", func(t *testing.T) {
		w.stored.Spec.Cancel = api.CancelRollback
		w.run()
		assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	})
}

// The same step is decided on again where it has changed something, or where it took a while and is
// resumed.
func TestAStepThatChangesSomethingOrTakesAWhileIsNoStandstill(t *testing.T) {
	for name, between := range map[string]func(w *world, s *saga){
		"it changes an item":   func(_ *world, s *saga) { s.txn = s.txn.DeepCopy(); s.txn.Status.Items[0].Message += "." },
		"it changes the phase": func(_ *world, s *saga) { s.txn = s.txn.DeepCopy(); s.txn.Status.Phase += "." },
		"more is known":        func(_ *world, s *saga) { s.flight.Known[len(s.flight.Known)] = plan.Over },
		"it takes a while":     func(w *world, _ *saga) { w.clock.Step(pollInterval) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "a")
			w.stored.Status.Items = []api.Item{{Name: "a"}}
			s, l := w.engine.saga(w.stored), standstill{}
			for range 2 * mostRepeats {
				require.NoError(t, l.decided(s, plan.Action{Verb: plan.Record}))
				between(w, s)
			}
		})
	}
}
