package enforced_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/wiring"
	"janus.io/janus/internal/wiring/enforced"
	"janus.io/janus/test/harness"
)

func (w *world) sweeper(c clock.WithTicker) *enforced.Sweeper {
	return enforced.NewSweeper(enforced.NewTables(w.Dynamic), wiring.NewJournal(w.Dynamic), c, zaptest.NewLogger(w.t))
}

// TestWhatIsOverIsSwept is about entries that no end of a Transaction removes. Two janusd
// sweep at once.
func TestWhatIsOverIsSwept(t *testing.T) {
	w := newWorld(t)
	janus := w.Start(harness.EnforcingLocks())
	w.Apply(objects)
	ended := w.Run("ended", `{changes: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "3"}}}]}`)
	require.Equal(t, api.PhaseCommitted, ended.Status.Phase)
	janus.Stop()
	running := w.stored("runs", "a")
	w.enter(map[string]string{
		"configmaps/running":   holder(running),
		"configmaps/ended":     holder(ended),
		"configmaps/gone":      w.Namespace + "/gone/2f0c8bd2-0000-4000-8000-000000000000",
		"configmaps/successor": w.Namespace + "/runs/2f0c8bd2-0000-4000-8000-000000000000",
		"configmaps/nonsense":  "somebody",
		"configmaps/empty":     "",
	})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { assert.NoError(t, w.sweeper(clock.RealClock{}).Sweep(t.Context())) })
	}
	all.Wait()
	require.Equal(t, map[string]string{"configmaps/running": holder(running)}, w.locks())
}

// TestItIsSweptEveryMinute is about a Transaction that another client has deleted by force while
// janusd was away.
func TestItIsSweptEveryMinute(t *testing.T) {
	w := newWorld(t)
	w.enter(map[string]string{"configmaps/a": w.Namespace + "/gone/2f0c8bd2-0000-4000-8000-000000000000"})
	turning := clocktesting.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	var done sync.WaitGroup
	done.Go(func() { w.sweeper(turning).Run(t.Context()) })
	require.Eventually(t, turning.HasWaiters, settle, poll)
	turning.Step(enforced.Every - time.Second)
	time.Sleep(300 * time.Millisecond)
	require.NotEmpty(t, w.locks(), "it is not time yet")
	turning.Step(time.Second)
	w.noneLeft()
	t.Cleanup(done.Wait)
}
