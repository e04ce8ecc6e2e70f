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

// goesOn has the others made when a change fails.
func (w *world) goesOn() *world {
	w.stored.Spec.OnFailure = api.FailureContinue
	return w
}

// going has a scenario begin with that.
func going(set func(w *world)) func(w *world) {
	return func(w *world) {
		w.goesOn()
		set(w)
	}
}

var errTampered = errclass.New(errclass.Terminal, errclass.BeforeImageTampered, "restore", "ConfigMap shop/a", "it is not what was saved")

// continuing are the scenarios in which the others are made when a change fails.
var continuing = []scenario{
	{"goes on, all are made", []string{"a", "b"}, going(func(*world) {}), api.PhaseCommitted},
	{"goes on, the second is refused", []string{"a", "b", "c"}, going(refuseB), api.PhaseFailed},
	{"goes on, the first of a diamond is refused", turned, going(func(w *world) {
		diamond(w)
		w.refuse["do a"] = errRefused
	}), api.PhaseFailed},
	{"goes on, a side of a diamond is refused", turned, going(func(w *world) {
		diamond(w)
		w.refuse["do b"] = errRefused
	}), api.PhaseFailed},
	{"goes on, one is not ready in time", []string{"a", "b", "c"}, going(func(w *world) {
		w.waitsFor("a", "3s")
		w.refers["b"] = []string{"a"}
	}), api.PhaseFailed},
	{"goes on, the answer is lost and the next attempt is refused", []string{"a", "b"}, going(func(w *world) {
		w.replies["do a"] = []reply{{err: errLost}, {err: errRefused}}
	}), api.PhaseFailed},
	{"goes on, a refused request lands while it is settled", []string{"a", "b"}, going(func(w *world) {
		w.replies["do a"] = []reply{{err: errLost}, {err: errRefused}}
		w.after["-- looks again in 1s"] = func() { w.targets["a"], w.dos["a"] = wrote("a"), 1 }
	}), api.PhaseCommitted},
	{"goes on, a refused request lands and another change fails", []string{"a", "b"}, going(func(w *world) {
		w.stored.Spec.Order = api.OrderGraph
		w.replies["do a"] = []reply{{err: errLost}, {err: errRefused}}
		w.refuse["do b"] = errRefused
		w.after["-- looks again in 1s"] = func() { w.targets["a"], w.dos["a"] = wrote("a"), 1 }
	}), api.PhaseFailed},
	{"goes on, another client has written the target", []string{"a", "b"}, going(func(w *world) {
		w.replies["do a"] = []reply{{err: errLost}}
		w.after["do a: fails"] = func() { w.targets["a"] = "theirs" }
	}), api.PhaseFailed},
	{"goes on, a later change of the object of one that is refused", []string{"a1", "a2", "b"}, going(func(w *world) {
		w.refuse["do a1"] = errRefused
	}), api.PhaseFailed},
	{"goes on, the pre-flight refuses two", []string{"a", "b", "c"}, going(func(w *world) { w.problems = twoProblems }), api.PhaseFailed},
	{"goes on, the timeout ends", []string{"a", "b", "c"}, going(func(w *world) {
		w.stored.Spec.Timeout = ptr.To(api.Duration("5s"))
		w.after["do a"] = func() { w.clock.Step(6 * time.Second) }
	}), api.PhaseFailed},
	{"goes on, the timeout ends while a request may land", []string{"a", "b"}, going(func(w *world) {
		w.stored.Spec.Timeout = ptr.To(api.Duration("5s"))
		w.replies["do a"] = []reply{{err: errLost}}
		w.after["do a: fails"] = func() { w.clock.Step(6 * time.Second) }
	}), api.PhaseFailed},
	{"goes on, too many attempts fail", []string{"a", "b"}, going(func(w *world) {
		w.retries(1)
		w.replies["do a"] = busy(3)
	}), api.PhaseFailed},
	{"goes on, a lock is lost", []string{"a", "b"}, going(func(w *world) {
		w.after["do a"] = func() { w.locks["b"] = "another Transaction" }
	}), api.PhaseFailed},
	{"goes on, a refused request lands after nothing more is made", []string{"a", "b"}, going(func(w *world) {
		w.stored.Spec.Timeout = ptr.To(api.Duration("5s"))
		w.replies["do a"] = []reply{{err: errLost}, {err: errRefused}}
		w.after["-- looks again in 1s"] = func() {
			w.clock.Step(6 * time.Second)
			w.targets["a"], w.dos["a"] = wrote("a"), 1
		}
	}), api.PhaseFailed},
	{"goes on, the before-image is tampered with while a request may land", []string{"a", "b"}, going(func(w *world) {
		w.replies["do a"] = []reply{{err: errLost, crash: true}, {err: errTampered}}
		w.refuse["observe a"] = errTampered
		w.after["-- looks again in 1s"] = func() { w.targets["a"], w.dos["a"] = wrote("a"), 1 }
	}), api.PhaseFailed},
	{"goes on, and is cancelled after a failure", []string{"a", "b", "c"}, going(func(w *world) {
		w.refuse["do a"] = errRefused
		w.after["do b"] = func() { w.cancel(api.CancelRollback) }
	}), api.PhaseRolledBack},
	{"goes on, and is stopped after a failure", []string{"a", "b", "c"}, going(func(w *world) {
		w.refuse["do a"] = errRefused
		w.after["do b"] = func() { w.cancel(api.CancelStop) }
	}), api.PhaseFailed},
	{"goes on, and is deleted after a failure", []string{"a", "b", "c"}, going(func(w *world) {
		w.stored.Spec.OnDelete = api.DeleteRollback
		w.refuse["do a"] = errRefused
		w.after["do b"] = w.delete
	}), ""},
	{"goes on, and is cancelled when it has ended", []string{"a", "b"}, going(func(w *world) {
		w.refuse["do a"] = errRefused
		w.after["hand over"] = func() { w.cancel(api.CancelRollback) }
	}), api.PhaseFailed},
	{"goes on, and the target of an Await does not come", []string{"a", "b", "c"}, going(func(w *world) {
		w.waitsFor("a", "3s")
		w.stored.Spec.Changes[0].Type = api.Await
		w.needs("c", "a")
		w.stored.Spec.Order = api.OrderGraph
	}), api.PhaseFailed},
}

// What has failed is told at once, and what is not made because of it.
func TestWhatIsNotMadeIsTold(t *testing.T) {
	w := newWorld(t, "a", "b", "c").goesOn()
	w.refuse["do a"] = errRefused
	w.needs("b", "a")
	w.run()
	require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
	items := w.stored.Status.Items
	assert.Equal(t, api.ItemRejected, items[0].State)
	assert.True(t, items[0].Failed)
	assert.Equal(t, errclass.Rejected, items[0].Reason)
	assert.Equal(t, api.ItemSkipped, items[1].State)
	assert.Equal(t, "DependencyFailed", items[1].Reason)
	assert.Contains(t, items[1].Message, "it depends on a, which has failed")
	assert.Equal(t, api.ItemCommitted, items[2].State)
	assert.Equal(t, "1/3", w.stored.Status.Progress)
	assert.Equal(t, "a", w.stored.Status.FailedItem)
	reason, message := plan.RecordedCause(&w.stored.Status)
	assert.Equal(t, errclass.Rejected, reason)
	assert.Contains(t, message, "item a: ")
	assert.Contains(t, readyOf(w), "1/3 changes are in effect, and nothing is rolled back, because spec.onFailure is Continue; failed: items a; not made: items b; item a: ")
	assert.Empty(t, w.undos)
	assert.Nil(t, w.stored.Status.RollbackRef, "nothing is left to roll back")
	oracle(t, w)
}

// Nothing more was to be made since the time was over, and what was under way turns out to be in effect: there
// is no reason any more why it should not commit.
func TestAChangeThatTurnsOutToBeInEffectTakesTheCauseAway(t *testing.T) {
	w := newWorld(t, "a").goesOn()
	w.stored.Spec.Timeout = ptr.To(api.Duration("5s"))
	w.replies["do a"] = []reply{{err: errLost, lost: true}}
	w.replies["observe a"] = []reply{{err: errBusy}}
	w.after["do a"] = func() { w.clock.Step(6 * time.Second) }
	w.run()
	assert.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
	late := false
	for _, txn := range w.reached {
		reason, _ := plan.RecordedCause(&txn.Status)
		late = late || reason == errclass.DeadlineExceeded
		assert.False(t, txn.Status.Items[0].State == api.ItemCommitted && reason != "", "%s is said:\n%s", reason, w.transcript())
	}
	assert.True(t, late, w.transcript())
	oracle(t, w)
}

// Several that are refused side by side are all told.
func TestSeveralThatFailSideBySideAreTold(t *testing.T) {
	w := newWorld(t, "a", "b", "c").wide(0).goesOn()
	w.stored.Spec.Order = api.OrderGraph
	w.refuse["do a"], w.refuse["do c"] = errRefused, errRefused
	w.run()
	require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
	for i, state := range []api.ItemState{api.ItemRejected, api.ItemCommitted, api.ItemRejected} {
		assert.Equal(t, state, w.stored.Status.Items[i].State, w.transcript())
	}
	oracle(t, w)
}

// A plan tells what would be made all the same.
func TestAPlanTellsWhatWouldBeMadeAllTheSame(t *testing.T) {
	w := newWorld(t, "a", "b", "c").goesOn()
	w.stored.Spec.DryRun = true
	w.problems = twoProblems[:1]
	w.run()
	require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
	assert.Contains(t, readyOf(w), "the 2 others would be made, because spec.onFailure is Continue")
	w = newWorld(t, "a").goesOn()
	w.stored.Spec.DryRun = true
	w.run()
	require.Equal(t, api.PhasePlanned, phaseOf(w), w.transcript())
	assert.Contains(t, readyOf(w), "if one fails, all that does not depend on it is made, and nothing is rolled back, because spec.onFailure is Continue")
}

// readyOf is what the condition Ready of a world says.
func readyOf(w *world) string {
	for _, c := range w.stored.Status.Conditions {
		if c.Type == api.ConditionReady {
			return c.Message
		}
	}
	return ""
}

// Whenever a process ends, nothing is made that depends, over whatever else, on what has failed.
func TestNothingIsMadeAfterACrashThatDependsOnWhatHasFailed(t *testing.T) {
	for n := 1; ; n++ {
		w := newWorld(t, "a", "b", "c").goesOn().wide(100)
		w.needs("b", "a")
		w.needs("c", "b")
		w.refuse["do a"] = errRefused
		w.nth = func(call int, _ string) reply { return reply{crash: call == n} }
		w.run()
		require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
		assert.Zero(t, w.dos["b"]+w.dos["c"], w.transcript())
		oracle(t, w)
		if w.calls < n {
			return
		}
	}
}

// What may land is waited out under its lock, also where it can't be found out what became of it.
func TestALockIsKeptWhileWhatCannotBeFoundOutMayLand(t *testing.T) {
	w := newWorld(t, "a", "b").goesOn()
	w.replies["do a"] = []reply{{err: errLost}, {err: errTampered}}
	w.refuse["observe a"] = errTampered
	landed := false
	w.after["-- looks again in 1s"] = func() {
		landed = true
		assert.NotEmpty(t, w.locks["a"], w.transcript())
	}
	w.run()
	require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
	assert.True(t, landed, w.transcript())
	assert.Equal(t, api.ItemUnresolved, w.stored.Status.Items[0].State)
	assert.Equal(t, errclass.BeforeImageTampered, w.stored.Status.Items[0].Reason)
	oracle(t, w)
}
