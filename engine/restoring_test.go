package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
	"janus.io/janus/internal/errclass"
)

// restoredWhen has the compensation of a change waited for, which the world says what of.
func (w *world) restoredWhen(name string, timeout api.Duration) {
	c := &w.stored.Spec.Changes[slices.IndexFunc(w.stored.Spec.Changes, func(c api.Change) bool { return c.Name == name })]
	c.Rollback = &api.ChangeRollback{ReadyWhen: api.ReadyWhen{Status: api.StatusReady, Timeout: &timeout}}
	w.unrestored[name] = Readiness{Message: "ConfigMap shop/" + name + ": 0 of 2"}
}

// refused has the last change refused, and the one before it waited for once it is rolled back.
func refusedAndRestored(w *world) {
	w.refuse["do c"] = errRefused
	w.restoredWhen("b", "1m")
}

var restoring = []scenario{
	{"a compensation is waited for before the next", []string{"a", "b", "c"}, func(w *world) {
		refusedAndRestored(w)
		w.after["-- looks again in 1s"] = func() { delete(w.unrestored, "b") }
	}, api.PhaseRolledBack},
	{"the last compensation is waited for before the end", []string{"a", "b", "c"}, func(w *world) {
		w.refuse["do c"] = errRefused
		w.restoredWhen("a", "1m")
		w.after["-- looks again in 1s"] = func() { delete(w.unrestored, "a") }
	}, api.PhaseRolledBack},
	{"a compensation does not become ready in time", []string{"a", "b", "c"}, func(w *world) {
		refusedAndRestored(w)
		w.restoredWhen("b", "2s")
		w.refers["b"] = []string{"a"}
	}, api.PhaseFailed},
	{"a compensation does not become ready before the recovery", []string{"a", "b", "c"}, func(w *world) {
		w.restoredWhen("b", "2s")
		w.refuse["do c"] = errRefused
		w.refers["b"] = []string{"a"}
		w.after["-- looks again in 10s"] = func() { delete(w.unrestored, "b") }
	}, api.PhaseRolledBack},
	{"a restored target says that it has failed, and is ready later", []string{"a", "b", "c"}, func(w *world) {
		refusedAndRestored(w)
		w.unrestored["b"] = Readiness{Failed: true, Message: "ConfigMap shop/b: crashed"}
		w.after["-- looks again in 1s"] = func() { delete(w.unrestored, "b") }
	}, api.PhaseRolledBack},
	{"the time of a rollback ends while a compensation is waited for", []string{"a", "b", "c"}, func(w *world) {
		refusedAndRestored(w)
		w.stored.Spec.Timeout = ptr.To(api.Duration("3s"))
	}, api.PhaseFailed},
	{"a branch is rolled back while another is waited for", turned, func(w *world) {
		diamond(w)
		w.refuse["do d"] = errRefused
		w.restoredWhen("c", "1m")
		w.after["-- looks again in 1s"] = func() { delete(w.unrestored, "c") }
	}, api.PhaseRolledBack},
	{"a compensation that is waited for is refused and tried again after the others", []string{"a", "b", "c"}, func(w *world) {
		refusedAndRestored(w)
		w.replies["undo b"] = []reply{{err: errForbidden}}
		w.after["-- looks again in 1s"] = func() { delete(w.unrestored, "b") }
	}, api.PhaseRolledBack},
	{"a compensation has to hold", []string{"a", "b", "c"}, func(w *world) {
		refusedAndRestored(w)
		w.stored.Spec.Changes[1].Rollback.ReadyWhen.HoldFor = ptr.To(api.Duration("3s"))
		delete(w.unrestored, "b")
	}, api.PhaseRolledBack},
	{"it is suspended while a compensation is waited for", []string{"a", "b", "c"}, func(w *world) {
		refusedAndRestored(w)
		w.restoredWhen("b", "5s")
		w.after["-- looks again in 1s"] = func() { w.suspend() }
		w.after["-- looks again in 1m15s"] = func() {
			w.resume()
			delete(w.unrestored, "b")
		}
	}, api.PhaseRolledBack},
	{"it is stopped while a compensation is waited for", []string{"a", "b", "c"}, func(w *world) {
		refusedAndRestored(w)
		w.after["-- looks again in 1s"] = func() { w.cancel(api.CancelStop) }
	}, api.PhaseFailed},
	{"what an earlier change of the same object needs is rolled back after that", []string{"c", "a1", "a2", "b"}, func(w *world) {
		w.stored.Spec.Order = api.OrderGraph
		w.refers["a1"] = []string{"c"}
		w.refuse["do b"] = errRefused
		w.restoredWhen("a2", "1m")
		w.after["-- looks again in 1s"] = func() { delete(w.unrestored, "a2") }
	}, api.PhaseRolledBack},
	{"a change of the same object is rolled back once the later one is ready", []string{"a1", "a2", "c"}, func(w *world) {
		w.refuse["do c"] = errRefused
		w.restoredWhen("a2", "1m")
		w.after["-- looks again in 1s"] = func() { delete(w.unrestored, "a2") }
	}, api.PhaseRolledBack},
}

// Whatever a process does not live to do, nothing is rolled back before what it comes after is
// ready, which the world checks; and nothing is rolled back twice.
func TestACrashWhileACompensationIsWaitedForChangesNothingAboutTheEnd(t *testing.T) {
	for _, s := range restoring {
		for _, open := range []int{1, 100} {
			t.Run(s.name, func(t *testing.T) {
				for n := 1; ; n++ {
					w := newWorld(t, s.items...).wide(open)
					s.set(w)
					w.nth = func(call int, _ string) reply { return reply{crash: call == n} }
					w.after["-- the process ends"] = func() {
						clear(w.unrestored)
						if w.stored.Spec.Suspend {
							w.resume()
						}
					}
					w.run()
					require.NoError(t, checkOrder(w.lines), w.transcript())
					assert.Contains(t, []api.Phase{s.ends, api.PhaseRolledBack}, phaseOf(w), w.transcript())
					oracle(t, w)
					if w.calls < n {
						return
					}
				}
			})
		}
	}
}

// It is said that the target is as it was, and what it lacks; what depends on it stays in effect.
func TestWhatIsSaidOfACompensationThatIsNotReady(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.refuse["do c"] = errRefused
	w.refers["b"] = []string{"a"}
	w.restoredWhen("b", "2s")
	w.run()
	require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
	a, b := w.stored.Status.Items[0], w.stored.Status.Items[1]
	assert.Equal(t, api.ItemUnresolved, b.State)
	assert.Equal(t, errclass.RollbackNotReady, b.Reason)
	assert.Equal(t, "restored, but not ready within 2s: ConfigMap shop/b: 0 of 2", b.Message)
	assert.True(t, b.RolledBack)
	assert.False(t, b.Committed)
	assert.Equal(t, errclass.Blocked, a.Reason)
	assert.Equal(t, "b", a.BlockedBy)
	assert.Equal(t, "1/3", w.stored.Status.Progress, "of the two only one is in effect")
	assert.Equal(t, testPolicy.Recoveries, w.stored.Status.Recoveries, "each recovery has waited again")
	assert.Equal(t, 1, w.undos["b"])
}

func TestACompensationThatIsTheOnlyOneNotReadyIsSaidToBeRolledBack(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	refusedAndRestored(w)
	w.restoredWhen("b", "2s")
	w.unrestored["b"] = Readiness{Failed: true, Message: "ConfigMap shop/b: crashed"}
	w.run()
	for _, c := range w.stored.Status.Conditions {
		if c.Type == api.ConditionReady {
			assert.True(t, strings.HasPrefix(c.Message, "rolled back, and not ready: item b (ConfigMap shop/b): restored, but not ready within 2s: ConfigMap shop/b: crashed"), c.Message)
		}
	}
}

// The time of the wait does not run while nobody looks.
func TestTheWaitForACompensationStandsStillWithTheTransaction(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	refusedAndRestored(w)
	w.restoredWhen("b", "10s")
	var began metav1.Time
	w.after["-- looks again in 1s"] = func() {
		began = *w.stored.Status.Items[1].RollbackWait.StartTime
		w.suspend()
	}
	w.after["-- looks again in 1m15s"] = func() { w.resume() }
	w.after["checkpoint 9"] = func() { delete(w.unrestored, "b") }
	w.run()
	require.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	wait := w.stored.Status.Items[1].RollbackWait
	assert.Greater(t, wait.StartTime.Sub(began.Time), time.Minute, w.transcript())
	assert.NotNil(t, wait.ReadyTime)
	assert.True(t, fixture.Start.Before(began.Time) || fixture.Start.Equal(began.Time))
}
