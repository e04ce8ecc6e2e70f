package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// longest is the longest wait of the controller between two attempts.
const longest = 45 * time.Second

// patiently does what the controller does when attempts have failed for a while: it waits
// for long, and no longer than the engine has said. It gives how long all took.
func (w *world) patiently(until api.Phase) time.Duration {
	w.t.Helper()
	begun := w.clock.Now()
	for range 300 {
		result, _ := w.once()
		if w.stored.Status.Phase == until {
			return w.clock.Now().Sub(begun)
		}
		wait := longest
		switch {
		case result.Err != nil && result.Within > 0:
			wait = min(longest, result.Within)
		case result.Err == nil && result.After > 0:
			wait = result.After
		}
		w.clock.Step(wait)
	}
	w.t.Fatalf("never %s:\n%s", until, w.transcript())
	return 0
}

func TestNoWaitBetweenAttemptsIsLongerThanTheTimeThatIsLeft(t *testing.T) {
	silent := errclass.New(errclass.Unknown, errclass.ServerUnavailable, "patch", "ConfigMap shop/b", "no answer")
	limit, gate := api.Duration("50s"), api.Duration("20s")
	for _, tt := range []struct {
		name    string
		until   api.Phase
		prepare func(w *world)
		most    time.Duration
	}{
		{"while the locks are waited for", api.PhaseFailed, func(w *world) { w.locks["b"] = "another Transaction" }, 50 * time.Second},
		{"while a change is tried again", api.PhaseRollingBack, func(w *world) { w.refuse["do b"] = silent }, 50 * time.Second},
		{"while it is not known whether a change is ready", api.PhaseRolledBack, func(w *world) {
			w.waitsFor("a", gate)
			w.refuse["look at a"] = silent
		}, 21 * time.Second},
		{"while a compensation is tried again", api.PhaseFailed, func(w *world) {
			w.refuse["do b"] = errclass.New(errclass.Terminal, errclass.Rejected, "patch", "ConfigMap shop/b", "no")
			w.refuse["undo a"] = silent
		}, 50 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "a", "b")
			w.stored.Spec.Timeout = &limit
			tt.prepare(w)
			took := w.patiently(tt.until)
			assert.LessOrEqual(t, took, tt.most+5*time.Second, w.transcript())
			require.GreaterOrEqual(t, took, tt.most-time.Second, w.transcript())
		})
	}
}

func TestWhileItIsSuspendedNoTimeRuns(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.refuse["do a"] = errclass.New(errclass.Unknown, errclass.ServerUnavailable, "patch", "ConfigMap shop/a", "no answer")
	result, _ := w.once()
	require.Positive(t, result.Within)
	w.stored.Spec.Suspend = true
	w.clock.Step(time.Hour)
	result, _ = w.once()
	assert.Zero(t, result.Within, w.transcript())
}

func TestATimeoutThatEndsDuringAnAttemptIsNotSleptThrough(t *testing.T) {
	w := newWorld(t, "a", "b")
	limit := api.Duration("50s")
	w.stored.Spec.Timeout = &limit
	w.refuse["do b"] = errclass.New(errclass.Unknown, errclass.ServerUnavailable, "patch", "ConfigMap shop/b", "no answer")
	w.after["do b"] = func() { w.clock.Step(51 * time.Second) }
	result, _ := w.once()
	require.Error(t, result.Err)
	assert.Positive(t, result.Within, w.transcript())
	assert.Less(t, result.Within, time.Second)
	w.clock.Step(result.Within)
	_, _ = w.once()
	assert.Equal(t, api.PhaseRollingBack, w.stored.Status.Phase, w.transcript())
}

func TestWhatIsOverForLongIsNotTriedWithoutAPause(t *testing.T) {
	w := newWorld(t, "a", "b")
	limit := api.Duration("50s")
	w.stored.Spec.Timeout = &limit
	silent := errclass.New(errclass.Unknown, errclass.ServerUnavailable, "patch", "ConfigMap shop/b", "no answer")
	w.refuse["do b"] = silent
	_, _ = w.once()
	w.clock.Step(time.Hour)
	w.replies["checkpoint"] = []reply{{err: silent}}
	result, _ := w.once()
	require.Error(t, result.Err, w.transcript())
	assert.Zero(t, result.Within)
}

func TestTheMessageOfATimeoutSaysWhatWasWaitedFor(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.locks["b"] = "another Transaction"
	w.stored.Spec.Timeout = ptr.To(api.Duration("3s"))
	w.run()
	_, message := plan.RecordedCause(&w.stored.Status)
	assert.Equal(t, "not done within spec.timeout (3s): lock ConfigMap shop/b: Lease shop/lock-b is held by another Transaction; waiting until it is released or expires", message)
}
