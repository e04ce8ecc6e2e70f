package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// A rollback that is suspended or stopped leaves what it has not begun, no matter who goes on.

// rollingBack is a world in which the last of five changes is refused, and all intents to
// compensate the others are open at once.
func rollingBack(t *testing.T) *world {
	w := newWorld(t, "a", "b", "c", "d", "e").wide(0)
	w.refuse["do e"] = errRefused
	return w
}

// noticed is how long a process works before it writes the status, and sees that another
// client has written the Transaction.
const noticed = 600 * time.Millisecond

// steps runs it so many times, whether it is at rest or not.
func (w *world) steps(most int) {
	for range most {
		result, crash := w.once()
		if crash {
			w.say("-- the process ends; another starts")
			w.restart()
		}
		w.say("-- looks again in " + result.After.String())
		w.clock.Step(max(result.After, time.Second))
	}
}

// statesNow are the states of the items on record.
func (w *world) statesNow() string {
	var out []string
	for _, item := range w.stored.Status.Items {
		out = append(out, string(item.State))
	}
	return strings.Join(out, " ")
}

func TestASuspendedRollbackStandsStillInAnotherProcessToo(t *testing.T) {
	w := rollingBack(t)
	w.after["undo d"] = func() { w.suspend(); w.clock.Step(noticed) }
	w.steps(2)
	assert.Equal(t, "Committed Committed Committed RolledBack Rejected", w.statesNow(), w.transcript())
	w.restart()
	w.steps(5)
	assert.Equal(t, map[string]int{"d": 1}, w.undos, w.transcript())
	assert.Equal(t, api.PhaseRollingBack, phaseOf(w))
	status, _, message := told(w, api.ConditionSuspended)
	assert.Equal(t, "True", status)
	assert.Contains(t, message, "3/5 changes are in effect")

	w.resume()
	w.run()
	assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	oracle(t, w)
}

// The checkpoint that withdraws the intents may be the last that a process does, or lose
// its answer, or never arrive.
func TestASuspendedRollbackStandsStillWhateverBecomesOfTheRecord(t *testing.T) {
	for name, r := range map[string]reply{
		"the process ends":   {err: errLost, lost: true, crash: true},
		"the answer is lost": {err: errLost, lost: true},
		"it never arrives":   {err: errLost},
	} {
		t.Run(name, func(t *testing.T) {
			w := rollingBack(t)
			w.after["undo d"] = func() { w.suspend(); w.clock.Step(noticed) }
			hit := false
			w.nth = func(_ int, who string) reply {
				if hit || who != "checkpoint" || !strings.HasSuffix(w.statesNow(), "RolledBack Rejected") {
					return reply{}
				}
				hit = true
				return r
			}
			w.steps(8)
			assert.Equal(t, map[string]int{"d": 1}, w.undos, w.transcript())
			assert.Equal(t, "Committed Committed Committed RolledBack Rejected", w.statesNow(), w.transcript())
			w.resume()
			w.run()
			assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
			oracle(t, w)
		})
	}
}

// A process ends before it has recorded the suspension. Of what it had open the next one
// finds out what was begun, and waits until nothing of it can land any more.
func TestARollbackThatIsSuspendedWhenItsProcessEndsStandsStill(t *testing.T) {
	w := rollingBack(t)
	w.replies["undo d"] = []reply{{err: errLost, lost: true, crash: true}}
	w.after["-- the process ends"] = w.suspend
	w.steps(12)
	assert.Equal(t, map[string]int{"d": 1}, w.undos, w.transcript())
	assert.Equal(t, "RollingBack RollingBack RollingBack RolledBack Rejected", w.statesNow(), w.transcript())
	assert.NotNil(t, w.stored.Status.SuspendTime)
	assert.Equal(t, 1, strings.Count(w.transcript(), "cannot take effect any more"), "one wait for all:\n%s", w.transcript())

	w.resume()
	w.run()
	assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	assert.Nil(t, w.stored.Status.SuspendTime)
	oracle(t, w)
}

func TestARollbackThatIsStoppedWhenItsProcessEndsLeavesWhatWasNotBegun(t *testing.T) {
	for name, between := range map[string]func(w *world){
		"at once":                   func(w *world) { w.cancel(api.CancelStop) },
		"after it was suspended":    func(w *world) { w.suspend(); w.after[atRest] = func() { w.cancel(api.CancelStop) } },
		"while it is suspended":     func(w *world) { w.suspend(); w.after["observe c"] = func() { w.cancel(api.CancelStop) } },
		"after another replacement": func(w *world) { w.cancel(api.CancelStop); w.after["-- looks again in 1s"] = w.restart },
	} {
		t.Run(name, func(t *testing.T) {
			w := rollingBack(t)
			w.replies["undo d"] = []reply{{err: errLost, lost: true, crash: true}}
			w.after["-- the process ends"] = func() { between(w) }
			w.run()
			assert.Equal(t, map[string]int{"d": 1}, w.undos, w.transcript())
			assert.Equal(t, "Unresolved Unresolved Unresolved RolledBack Rejected", w.statesNow(), w.transcript())
			for _, item := range w.stored.Status.Items[:3] {
				assert.Equal(t, errclass.Cancelled, item.Reason)
			}
			oracle(t, w)
		})
	}
}

// What a request that was under way has rolled back is not left as the change made it.
func TestAStopWaitsForACompensationThatMayLand(t *testing.T) {
	w := rollingBack(t)
	w.replies["undo d"] = []reply{{err: errLost, lost: true, crash: true}}
	w.after["-- the process ends"] = func() {
		w.targets["d"], w.undos["d"] = wrote("d"), 0 // It has not landed yet.
		w.cancel(api.CancelStop)
		w.after["-- looks again in 1s"] = func() { w.targets["d"], w.undos["d"] = w.images["d"], 1 }
	}
	w.run()
	assert.Equal(t, "Unresolved Unresolved Unresolved RolledBack Rejected", w.statesNow(), w.transcript())
	oracle(t, w)
}

// What was rolled back in part is finished: it is neither as the change made it nor as it
// was before.
func TestACompensationThatIsMadeInPartIsFinished(t *testing.T) {
	w := rollingBack(t)
	w.replies["undo d"] = []reply{{err: errLost, lost: true, crash: true}}
	w.after["-- the process ends"] = func() {
		w.targets["d"], w.undos["d"] = "in part", 0
		w.suspend()
		w.after["observe d: diverged"] = func() { w.targets["d"] = "going" } // Undo goes on with that
	}
	w.steps(12)
	assert.Equal(t, "RollingBack RollingBack RollingBack RolledBack Rejected", w.statesNow(), w.transcript())
	assert.Equal(t, map[string]int{"d": 1}, w.undos, w.transcript())
}

// A process that has the intents open, and does not know that it was replaced, undoes
// nothing of which the next one says that it is left.
func TestAProcessThatWasReplacedUndoesNothingThatIsLeft(t *testing.T) {
	w := rollingBack(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.after["undo d"] = cancel
	w.engine.Run(ctx, w.stored.DeepCopy())
	first, knew := w.engine, w.stored.DeepCopy()
	require.Equal(t, "RollingBack RollingBack RollingBack RolledBack Rejected", w.statesNow(), w.transcript())

	w.cancel(api.CancelStop)
	w.restart()
	w.steps(1)
	require.Equal(t, api.PhaseRollingBack, phaseOf(w), "it waits for the first")

	w.say("-- the first goes on from what it knew")
	second := w.engine
	w.engine = first
	w.after["undo c"] = func() { w.clock.Step(2 * noticed) }
	first.Run(t.Context(), knew)
	w.engine = second
	w.run()
	assert.Equal(t, "Unresolved Unresolved RolledBack RolledBack Rejected", w.statesNow(), w.transcript())
	assert.Equal(t, map[string]int{"c": 1, "d": 1}, w.undos, w.transcript())
	oracle(t, w)
}

// Without leader election two processes may wait for what each other may have sent. Neither
// is for the other a reason to begin again for ever.
func TestTwoProcessesThatStopARollbackComeToAnEnd(t *testing.T) {
	for name, between := range map[string]func(w *world){
		"what was begun is over": func(*world) {},
		"it is to be finished":   func(w *world) { w.targets["d"], w.undos["d"] = "to be made anew", 0 },
	} {
		t.Run(name, func(t *testing.T) {
			w := rollingBack(t)
			w.replies["undo d"] = []reply{{err: errLost, lost: true, crash: true}}
			_, crash := w.once()
			require.True(t, crash, w.transcript())
			between(w)
			w.cancel(api.CancelStop)
			w.restart()
			first := w.engine
			w.restart()
			processes := []*Engine{first, w.engine}
			for look := 0; !w.stored.Status.Phase.Terminal() && look < 200; look++ {
				w.engine = processes[look%len(processes)]
				w.say("-- it is the turn of process " + string("12"[look%len(processes)]))
				result, _ := w.once()
				w.clock.Step(max(result.After, time.Second) / 2)
			}
			assert.Equal(t, "Unresolved Unresolved Unresolved RolledBack Rejected", w.statesNow(), w.transcript())
			oracle(t, w)
		})
	}
}

// The checkpoint that tells others of a stop may be the last that a process does, or lose its
// answer, or never arrive. Before it none of the compensations is looked at.
func TestAStopLeavesWhatWasNotBegunWhateverBecomesOfTellingOthers(t *testing.T) {
	for name, r := range map[string]reply{
		"the process ends before":        {err: errLost, crash: true},
		"the process ends after":         {err: errLost, lost: true, crash: true},
		"the answer is lost":             {err: errLost, lost: true},
		"it never arrives":               {err: errLost},
		"another client has written too": {err: errclass.New(errclass.Retryable, errclass.StaleVersion, "write", "Transaction", "another client has written it")},
	} {
		t.Run(name, func(t *testing.T) {
			w := rollingBack(t)
			w.replies["undo d"] = []reply{{err: errLost, lost: true, crash: true}}
			w.after["-- the process ends"] = func() {
				w.cancel(api.CancelStop)
				w.replies["checkpoint"] = []reply{r}
			}
			w.run()
			_, since, _ := strings.Cut(w.transcript(), "-- the process ends")
			told, looked := strings.Index(since, "\ncheckpoint "), strings.Index(since, "\nobserve")
			assert.True(t, told >= 0 && told < looked, w.transcript())
			assert.Empty(t, w.replies["checkpoint"])
			assert.Equal(t, map[string]int{"d": 1}, w.undos, w.transcript())
			assert.Equal(t, "Unresolved Unresolved Unresolved RolledBack Rejected", w.statesNow(), w.transcript())
			oracle(t, w)
		})
	}
}

// A recovery opens all compensations of an object at once. Where the latest is left, so are
// those of the changes below it, which cannot be told by the object as it is.
func TestWhatIsBelowAChangeThatIsLeftIsLeftToo(t *testing.T) {
	w := newWorld(t, "a1", "a2", "b").wide(0)
	w.refuse["do b"] = errRefused
	w.after["do a2"] = func() { w.cancel(api.CancelStop) }
	w.run()
	require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
	w.cancel(api.CancelRollback)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	w.after["checkpoint 11"] = end
	w.engine.Run(ctx, w.stored.DeepCopy())
	require.Equal(t, "RollingBack RollingBack Rejected", w.statesNow(), w.transcript())

	w.cancel(api.CancelStop)
	w.restart()
	w.run()
	assert.Empty(t, w.undos, w.transcript())
	for _, item := range w.stored.Status.Items[:2] {
		assert.Equal(t, api.ItemUnresolved, item.State)
		assert.Equal(t, errclass.Cancelled, item.Reason, w.transcript())
	}
}

// A Transaction that has ended does not stand still.
func TestWhatHasEndedIsNotSuspended(t *testing.T) {
	w := newWorld(t, "a", "b")
	refuseB(w)
	w.after["undo a"] = func() {
		w.suspend()
		w.stored.Status.SuspendTime = w.stored.Status.StartTime
	}
	w.run()
	assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	assert.Nil(t, w.stored.Status.SuspendTime)
	_, reason, _ := told(w, api.ConditionReconciling)
	assert.Equal(t, plan.ReasonFinished, reason)
	oracle(t, w)
}

// What an attempt before a recovery has rolled back is not left as the change made it.
func TestAStopInARecoveryFindsOutWhatWasBegunBefore(t *testing.T) {
	w := newWorld(t, "a", "b", "c").wide(0)
	w.refuse["do c"] = errRefused
	w.replies["undo b"] = []reply{{err: errForbidden}, {err: errForbidden}}
	w.replies["undo a"] = []reply{{err: errForbidden}, {err: errForbidden}}
	w.after["-- looks again in 10s"] = func() {
		w.targets["a"], w.undos["a"] = w.images["a"], 1
		w.after["undo b"] = func() {
			w.clock.Step(2 * noticed)
			w.cancel(api.CancelStop)
		}
	}
	w.run()
	assert.Equal(t, "RolledBack RolledBack Rejected", w.statesNow(), w.transcript())
	oracle(t, w)
}
