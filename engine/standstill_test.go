package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	api "janus.io/janus/api/v1alpha1"
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

// What does change something is done as often as there is something to do.
func TestManyStepsOfAKindAreNoStandstill(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"}
	w := newWorld(t, names...)
	w.run()
	assert.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
	assert.NotContains(t, w.transcript(), errclass.NoProgress)
}
