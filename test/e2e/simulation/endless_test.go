package simulation

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A defect that keeps a Transaction from ending must not keep the simulation from telling.
func TestARunThatNeverEndsIsNamed(t *testing.T) {
	t.Parallel()
	for name, choose := range map[string]func(*world, []*held) *held{
		"a process stands still": func(w *world, ready []*held) *held {
			w.frozen[ready[0].process] = time.Now().Add(100 * 365 * 24 * time.Hour)
			return ready[0]
		},
		"no status can be written": func(w *world, ready []*held) *held {
			if first := ready[0].name; strings.HasPrefix(first, "PUT ") && strings.Contains(first, "/status?") {
				require.NoError(t, w.actors.merge(w.transaction(transactionName(0)), "someone", map[string]any{"metadata": map[string]any{
					"annotations": map[string]any{"written": time.Now().Format(time.RFC3339Nano)},
				}}))
			}
			return ready[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := simulate(t, script{scenario: small()[0], seed: 1, choose: choose})
			require.NotEmpty(t, o.breaches)
			assert.Contains(t, o.breaches[0], "still not over after")
		})
	}
}
