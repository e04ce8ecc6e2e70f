package engine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// A status that has no room for the warnings about its items says all the same what it waits for.
func TestAWaitIsRecordedThoughTheStatusIsTooLarge(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.locks["b"] = "first"
	w.after["-- looks again"] = func() {
		require.Contains(t, plan.WaitingFor(w.stored), "held by first")
		w.stored.Status.Items[0].Warnings = []string{strings.Repeat("long ", 1000)}
		w.room = len(jsonOf(w.stored.Status)) - 1000
		w.locks["b"] = "second"
		w.after["-- looks again"] = func() {
			assert.Contains(t, plan.WaitingFor(w.stored), "held by second")
			assert.Empty(t, w.stored.Status.Items[0].Warnings)
			w.locks["b"] = ""
		}
	}
	w.run()
	require.Equal(t, api.PhaseCommitted, w.stored.Status.Phase, w.transcript())
	assert.Equal(t, 1, strings.Count(w.transcript(), "checkpoint: fails, TooLarge"), w.transcript())
}
