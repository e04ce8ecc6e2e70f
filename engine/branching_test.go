package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// needs makes a change of a world depend on others.
func (w *world) needs(name string, on ...string) {
	for i := range w.stored.Spec.Changes {
		if w.stored.Spec.Changes[i].Name == name {
			w.stored.Spec.Changes[i].DependsOn = on
		}
	}
}

// waitsFor gives a change a gate, which the world says what of.
func (w *world) waitsFor(name string, timeout api.Duration) {
	c := &w.stored.Spec.Changes[slices.IndexFunc(w.stored.Spec.Changes, func(c api.Change) bool { return c.Name == name })]
	c.ReadyWhen = &api.ReadyWhen{Status: api.StatusReady, Timeout: &timeout}
	w.unready[name] = Readiness{Message: "ConfigMap shop/" + name + ": 1 of 2"}
}

func (w *world) onlyWhen(name string, holds bool) {
	c := &w.stored.Spec.Changes[slices.IndexFunc(w.stored.Spec.Changes, func(c api.Change) bool { return c.Name == name })]
	c.When = "object != null"
	w.unasked[name] = !holds
}

// onlyWhere gives a change an activation that is decided when its turn comes.
func (w *world) onlyWhere(name string, holds bool) {
	c := &w.stored.Spec.Changes[slices.IndexFunc(w.stored.Spec.Changes, func(c api.Change) bool { return c.Name == name })]
	c.Activation = &api.Activation{APIVersion: "example.com/v1", Kind: "Widget"}
	w.unasked[name] = !holds
}

// diamond has d depend on b and c, and both on a; the list has them the other way round.
func diamond(w *world) {
	w.needs("d", "b", "c")
	w.needs("b", "a")
	w.needs("c", "a")
}

var turned = []string{"d", "c", "b", "a"}

var branching = []scenario{
	{"dependsOn gives the order", turned, diamond, api.PhaseCommitted},
	{"the last of a diamond is refused", turned, func(w *world) {
		diamond(w)
		w.refuse["do d"] = errRefused
	}, api.PhaseRolledBack},
	{"a branch goes on while another is waited for", turned, func(w *world) {
		diamond(w)
		w.waitsFor("c", "1m")
		w.after["-- looks again in 1s"] = func() { delete(w.unready, "c") }
	}, api.PhaseCommitted},
	{"a branch waits while another is waited for", turned, func(w *world) {
		diamond(w)
		w.stored.Spec.Parallelism = ptr.To(int32(1))
		w.waitsFor("c", "1m")
		w.after["-- looks again in 1s"] = func() { delete(w.unready, "c") }
	}, api.PhaseCommitted},
	{"a list waits for what is not ready", []string{"a", "b"}, func(w *world) {
		w.waitsFor("a", "1m")
		w.after["-- looks again in 1s"] = func() { delete(w.unready, "a") }
	}, api.PhaseCommitted},
	{"the last change is waited for", []string{"a", "b"}, func(w *world) {
		w.waitsFor("b", "1m")
		w.after["-- looks again in 1s"] = func() { delete(w.unready, "b") }
	}, api.PhaseCommitted},
	{"a change is not ready in time", []string{"a", "b"}, func(w *world) { w.waitsFor("b", "3s") }, api.PhaseRolledBack},
	{"a change cannot become ready", []string{"a", "b", "c"}, func(w *world) {
		w.waitsFor("b", "1m")
		w.after["-- looks again in 1s"] = func() {
			w.unready["b"] = Readiness{Failed: true, Message: "ConfigMap shop/b: crashed"}
		}
	}, api.PhaseRolledBack},
	{"it is suspended while a change is waited for", []string{"a", "b"}, func(w *world) {
		w.waitsFor("a", "5s")
		w.after["-- looks again in 1s"] = func() { w.suspend() }
		w.after["-- looks again in 1m15s"] = func() { w.resume() }
		w.after["checkpoint 7"] = func() { delete(w.unready, "a") }
	}, api.PhaseCommitted},
	{"a change is skipped", []string{"a", "b", "c"}, func(w *world) { w.onlyWhen("b", false) }, api.PhaseCommitted},
	{"a change is wanted", []string{"a", "b", "c"}, func(w *world) { w.onlyWhen("b", true) }, api.PhaseCommitted},
	{"a change is activated in its turn", []string{"a", "b", "c"}, func(w *world) { w.onlyWhere("b", true) }, api.PhaseCommitted},
	{"a change is not activated in its turn", append(slices.Clone(turned), "e"), func(w *world) {
		diamond(w)
		w.onlyWhere("b", false)
		w.onlyWhen("c", true)
	}, api.PhaseCommitted},
	{"it cannot be told whether a change is activated", []string{"a", "b", "c"}, func(w *world) {
		w.onlyWhere("b", true)
		w.replies["ask for the kind of b"] = []reply{{err: errBusy}}
		w.refuse["do c"] = errRefused
	}, api.PhaseRolledBack},
	{"it cannot be told whether a change is wanted", []string{"a", "b", "c"}, func(w *world) {
		w.onlyWhen("b", true)
		w.refuse["ask for b"] = errclass.New(errclass.Terminal, errclass.Invalid, "evaluate when of", "ConfigMap shop/b", "no such key: x")
	}, api.PhaseRolledBack},
	{"what depends on a skipped change is skipped", append(slices.Clone(turned), "e"), func(w *world) {
		diamond(w)
		w.onlyWhen("b", false)
		w.refuse["do e"] = errRefused
	}, api.PhaseRolledBack},
	{"all changes are skipped", []string{"a", "b"}, func(w *world) {
		w.needs("b", "a")
		w.onlyWhen("a", false)
	}, api.PhaseCommitted},
}

// Whatever a process does not live to do, the order holds: the world checks it.
func TestACrashInABranchChangesNothingAboutTheEnd(t *testing.T) {
	for _, s := range branching {
		t.Run(s.name, func(t *testing.T) {
			for n := 1; ; n++ {
				w := newWorld(t, s.items...)
				s.set(w)
				// After a crash time has passed: what waits for a certain moment is not to be missed.
				w.nth = func(call int, _ string) reply { return reply{crash: call == n} }
				w.after["-- the process ends"] = func() {
					clear(w.unready)
					if w.stored.Spec.Suspend {
						w.resume()
					}
				}
				w.run()
				require.NoError(t, checkOrder(w.lines), w.transcript())
				assert.Contains(t, []api.Phase{s.ends, api.PhaseCommitted}, phaseOf(w), w.transcript())
				oracle(t, w)
				if w.calls < n {
					return
				}
			}
		})
	}
}

func TestWhatIsWrongWithTheOrder(t *testing.T) {
	for title, c := range map[string]struct {
		set    func(w *world)
		reason string
		says   string
	}{
		"an unknown name": {func(w *world) { w.needs("b", "x") }, errclass.Invalid, `change b: dependsOn names "x", and no change has that name`},
		"itself":          {func(w *world) { w.needs("b", "b") }, errclass.CyclicDependency, "each waits for the next: b -> b"},
		"a cycle": {func(w *world) {
			w.needs("a", "c")
			w.needs("b", "a")
			w.needs("c", "b")
		}, errclass.CyclicDependency, "each waits for the next: a -> c -> b -> a"},
		"a change of the same object that comes later in the list": {func(w *world) {
			w.stored.Spec.Changes[2].Target = w.stored.Spec.Changes[0].Target
			w.needs("a", "c")
		}, errclass.CyclicDependency, "each waits for the next: a -> c -> a; take one of them out of dependsOn; changes of one object also wait"},
	} {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t, "a", "b", "c")
			c.set(w)
			_, err := plan.Order(w.stored)
			assert.Equal(t, errclass.Terminal, errclass.ClassOf(err))
			assert.Equal(t, c.reason, errclass.ReasonOf(err))
			assert.ErrorContains(t, err, c.says)
		})
	}
}

// A wait is polled, and never for longer than is left of its time.
func TestHowLongAWaitIsWaited(t *testing.T) {
	w := newWorld(t, "a")
	w.waitsFor("a", "90s")
	w.run()
	assert.Equal(t, api.PhaseRolledBack, phaseOf(w))
	took := w.clock.Now().Sub(fixture.Start)
	assert.GreaterOrEqual(t, took, 90*time.Second)
	assert.Less(t, took, 95*time.Second)
}

// The clock was an hour ahead when the wait began, and is put right: the wait is as long
// as any other, and so is the time for all changes.
func TestAWaitThatBeganAheadOfTheClockBeginsNow(t *testing.T) {
	w := newWorld(t, "a")
	w.waitsFor("a", "90s")
	w.clock.SetTime(fixture.Start.Add(time.Hour))
	w.after["-- looks again in 1s"] = func() {
		delete(w.after, "-- looks again in 1s")
		require.NotNil(t, w.stored.Status.Items[0].WaitStartTime)
		w.clock.SetTime(fixture.Start)
	}
	w.run()
	assert.Equal(t, api.PhaseRolledBack, phaseOf(w))
	assert.Equal(t, fixture.Start.Add(time.Second), w.stored.Status.StartTime.UTC(), w.transcript())
	took := w.clock.Now().Sub(fixture.Start)
	assert.GreaterOrEqual(t, took, 90*time.Second, w.transcript())
	assert.Less(t, took, 95*time.Second, w.transcript())
}

// So it is where nothing is written meanwhile but what the Transaction waits for.
func TestAWaitForALockThatBeganAheadOfTheClockBeginsNow(t *testing.T) {
	w := newWorld(t, "a")
	w.stored.Spec.Timeout = ptr.To(api.Duration("90s"))
	w.locks["a"] = "another Transaction"
	w.clock.SetTime(fixture.Start.Add(time.Hour))
	w.after["-- looks again in 1s"] = func() { w.clock.SetTime(fixture.Start) }
	w.run()
	assert.Equal(t, api.PhaseFailed, phaseOf(w))
	assert.Less(t, w.clock.Now().Sub(fixture.Start), 105*time.Second, w.transcript())
}

func TestARollbackThatBeganAheadOfTheClockBeginsNow(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.policy.Recoveries = 0
	w.restart()
	refuseB(w)
	w.stored.Spec.Timeout = ptr.To(api.Duration("90s"))
	w.refuse["undo a"] = errBusy
	w.after["do a"] = func() { w.clock.Step(30 * time.Second) }
	w.after["undo a: fails"] = func() { w.clock.SetTime(fixture.Start) }
	w.run()
	assert.Equal(t, api.PhaseFailed, phaseOf(w))
	assert.Equal(t, errclass.DeadlineExceeded, w.stored.Status.Items[0].Reason, w.transcript())
	assert.Less(t, w.stored.Status.CompletionTime.Sub(fixture.Start), 100*time.Second, w.transcript())
}

// What follows after the end of a Transaction counts from now if it ended ahead of the clock.
func TestWhatEndedAheadOfTheClockEndsNow(t *testing.T) {
	t.Run("it is recovered", func(t *testing.T) {
		w := newWorld(t, "a", "b")
		refuseB(w)
		w.replies["undo a"] = []reply{{err: errRefused}}
		w.after["do a"] = func() { w.clock.Step(time.Hour) }
		w.after["-- looks again in 10s"] = func() { w.clock.SetTime(fixture.Start) }
		w.run()
		assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
		assert.Less(t, w.clock.Now().Sub(fixture.Start), 30*time.Second, w.transcript())
	})
	t.Run("it is deleted", func(t *testing.T) {
		w := newWorld(t, "a")
		w.stored.Spec.TTLSecondsAfterFinished = ptr.To(int32(60))
		w.after["do a"] = func() { w.clock.Step(time.Hour) }
		w.after["-- looks again in 1m0s"] = func() { w.clock.SetTime(fixture.Start) }
		w.run()
		require.Nil(t, w.stored, w.transcript())
		assert.Equal(t, "1h0m0s", w.gone.Status.Duration, "that it took, as far as is known")
		assert.Less(t, w.clock.Now().Sub(fixture.Start), 130*time.Second, w.transcript())
	})
}

// Only what lies ahead begins now, in a rollback as well.
func TestWhatBeganBeforeNowKeepsItsBeginning(t *testing.T) {
	w := newWorld(t, "a", "b")
	before, ahead := metav1.NewTime(fixture.Start.Add(-time.Hour)), metav1.NewTime(fixture.Start.Add(time.Hour))
	status := api.TransactionStatus{
		StartTime: before.DeepCopy(), RollbackStartTime: ahead.DeepCopy(),
		Items: []api.Item{{WaitStartTime: before.DeepCopy()}, {WaitStartTime: ahead.DeepCopy()}, {}},
	}
	notAhead(&status, w.clock.Now())
	assert.Equal(t, before.UTC(), status.StartTime.UTC())
	assert.Equal(t, fixture.Start, status.RollbackStartTime.UTC())
	assert.Equal(t, before.UTC(), status.Items[0].WaitStartTime.UTC())
	assert.Equal(t, fixture.Start, status.Items[1].WaitStartTime.UTC())
	assert.Nil(t, status.Items[2].WaitStartTime)
}
