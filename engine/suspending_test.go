package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// edit changes the spec as a user does who may change it.
func (w *world) edit(what string, change func(spec *api.TransactionSpec)) {
	w.say("-- somebody sets " + what)
	change(&w.stored.Spec)
	w.stored.Generation++
	w.bump()
}

func (w *world) suspend() { w.edit("suspend", func(s *api.TransactionSpec) { s.Suspend = true }) }
func (w *world) resume() {
	w.edit("suspend to false", func(s *api.TransactionSpec) { s.Suspend = false })
}
func (w *world) cancel(how api.CancelPolicy) {
	w.edit("cancel to "+string(how), func(s *api.TransactionSpec) { s.Cancel = how })
}

// atRest is said when a suspended Transaction with locks is looked at.
const atRest = "-- looks again in 1m15s"

// halted are the scenarios in which a person suspends or cancels the Transaction.
var halted = []scenario{
	{"it is suspended while changes are made and goes on", []string{"a", "b", "c"}, func(w *world) {
		w.after["do a"] = w.suspend
		w.after[atRest] = w.resume
	}, api.PhaseCommitted},
	{"it is suspended for longer than the timeout", []string{"a", "b", "c"}, func(w *world) {
		w.stored.Spec.Timeout = ptr.To(api.Duration("5s"))
		w.after["do a"] = w.suspend
		w.after[atRest] = func() { w.after[atRest] = w.resume }
	}, api.PhaseCommitted},
	{"it is suspended before the first change and goes on", []string{"a", "b"}, func(w *world) {
		w.after["checkpoint 2"] = w.suspend
		w.after[atRest] = w.resume
	}, api.PhaseCommitted},
	{"it is suspended while it rolls back and goes on", []string{"a", "b", "c"}, func(w *world) {
		w.refuse["do c"] = errRefused
		w.after["undo b"] = w.suspend
		w.after[atRest] = w.resume
	}, api.PhaseRolledBack},
	{"a lock is lost while it is suspended", []string{"a", "b", "c"}, func(w *world) {
		w.after["do a"] = w.suspend
		w.after[atRest] = func() {
			w.locks["c"] = "another Transaction"
			w.resume()
		}
	}, api.PhaseRolledBack},
	{"it is suspended and then cancelled", []string{"a", "b", "c"}, func(w *world) {
		w.after["do a"] = w.suspend
		w.after[atRest] = func() { w.cancel(api.CancelRollback) }
	}, api.PhaseRolledBack},
	{"it is suspended and then deleted", []string{"a", "b", "c"}, func(w *world) {
		w.stored.Spec.OnDelete = api.DeleteRollback
		w.after["do a"] = w.suspend
		w.after[atRest] = w.delete
	}, ""},
	{"it is cancelled before anything is changed", []string{"a", "b"}, func(w *world) {
		w.after["save"] = func() { w.cancel(api.CancelRollback) }
	}, api.PhaseFailed},
	{"it is cancelled while changes are made", []string{"a", "b", "c"}, func(w *world) {
		w.after["do b"] = func() { w.cancel(api.CancelRollback) }
	}, api.PhaseRolledBack},
	{"it is cancelled after the last change", []string{"a", "b"}, func(w *world) {
		w.after["checkpoint 4"] = func() { w.cancel(api.CancelRollback) }
	}, api.PhaseCommitted},
	{"it is stopped while changes are made", []string{"a", "b", "c", "d"}, func(w *world) {
		w.after["do b"] = func() { w.cancel(api.CancelStop) }
	}, api.PhaseFailed},
	{"it is stopped while it rolls back", []string{"a", "b", "c"}, func(w *world) {
		w.refuse["do c"] = errRefused
		w.after["undo b"] = func() { w.cancel(api.CancelStop) }
	}, api.PhaseFailed},
	{"it is stopped while it is not known whether a change was made", []string{"a", "b", "c"}, func(w *world) {
		w.replies["do b"] = []reply{{err: errLost, lost: true}}
		w.after["do b"] = func() { w.cancel(api.CancelStop) }
	}, api.PhaseFailed},
	{"it is stopped before a failed rollback is taken up again", []string{"a", "b"}, func(w *world) {
		refuseB(w)
		w.refuse["undo a"] = errRefused
		w.after["-- looks again in 10s"] = func() { w.cancel(api.CancelStop) }
	}, api.PhaseFailed},
}

// A recovery puts the finalizer on before it records that it begins.
func TestARecoveryThatIsStoppedWhenItBeginsLeavesNoFinalizer(t *testing.T) {
	w := newWorld(t, "a", "b")
	refuseB(w)
	w.refuse["undo a"] = errRefused
	w.after["-- looks again in 10s"] = func() {
		w.after["add the finalizer"] = func() { w.cancel(api.CancelStop) }
	}
	w.run()
	assert.Equal(t, api.PhaseFailed, w.stored.Status.Phase, w.transcript())
	assert.Zero(t, w.stored.Status.Recoveries)
	oracle(t, w)
}

// Nor does one for which a person has asked, and who does not any more.
func TestARecoveryThatIsNotWantedAnyMoreWhenItBeginsLeavesNoFinalizer(t *testing.T) {
	for name, tt := range map[string]struct{ before, ask, take func(*world) }{
		"the annotation is taken away": {
			func(w *world) { refuseB(w); w.refuse["undo a"] = errDrifted },
			func(w *world) { w.ask("1") }, func(w *world) { w.ask("") },
		},
		"it is not to be rolled back after a stop": {
			func(w *world) { w.after["do a"] = func() { w.cancel(api.CancelStop) } },
			func(w *world) { w.cancel(api.CancelRollback) }, func(w *world) { w.cancel("") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "a", "b")
			tt.before(w)
			w.run()
			require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
			tt.ask(w)
			clear(w.after)
			w.after["add the finalizer"] = func() { tt.take(w) }
			w.run()
			assert.Contains(t, w.transcript(), "remove the finalizer\n", w.transcript())
			assert.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
			assert.Empty(t, w.undos, w.transcript())
			oracle(t, w)
		})
	}
}

func told(w *world, kind string) (status, reason, message string) {
	c := meta.FindStatusCondition(w.stored.Status.Conditions, kind)
	if c == nil {
		return "", "", ""
	}
	return string(c.Status), c.Reason, c.Message
}

func TestATransactionThatIsCreatedSuspendedTakesNothing(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.stored.Spec.Suspend = true
	w.run()
	require.Len(t, w.lines, 1)
	assert.Contains(t, w.lines[0], "checkpoint 1 Pending:  [waits: suspended; 0/2 changes are in effect")
	assert.Equal(t, api.PhasePending, w.stored.Status.Phase)
	assert.Equal(t, int64(1), w.stored.Status.ObservedGeneration)
	status, reason, _ := told(w, api.ConditionSuspended)
	assert.Equal(t, "True", status)
	assert.Equal(t, "Suspended", reason)
	assert.Empty(t, w.stored.Finalizers)

	w.clock.Step(time.Hour)
	w.resume()
	w.run()
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase)
	assert.Zero(t, w.stored.Status.SuspendedSeconds, "its time had not begun")
	status, reason, _ = told(w, api.ConditionSuspended)
	assert.Equal(t, "False", status)
	assert.Equal(t, "Resumed", reason)
	oracle(t, w)
}

func TestASuspendedTransactionSaysHowFarItIs(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.after["do a"] = w.suspend
	w.after[atRest] = func() {
		for _, kind := range []string{api.ConditionReady, api.ConditionReconciling, api.ConditionSuspended} {
			_, reason, message := told(w, kind)
			assert.Equal(t, "Suspended", reason, kind)
			assert.Contains(t, message, "1/3 changes are in effect", kind)
		}
		assert.Equal(t, w.stored.Generation, w.stored.Status.ObservedGeneration)
		w.resume()
	}
	w.run()
	assert.Equal(t, int64(75), w.stored.Status.SuspendedSeconds)
	assert.Nil(t, w.stored.Status.SuspendTime)
}

func TestWhatWasLeftByAStopIsRolledBackWhenThatIsAskedFor(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.after["do b"] = func() { w.cancel(api.CancelStop) }
	w.run()
	require.Equal(t, api.PhaseFailed, w.stored.Status.Phase)
	_, reason, message := told(w, api.ConditionStalled)
	assert.Equal(t, errclass.Cancelled, reason)
	assert.Equal(t, "the Transaction was cancelled (spec.cancel: Stop); stopped, and left in effect: items a (ConfigMap shop/a), b (ConfigMap shop/b); set spec.cancel to Rollback to roll them back", message)
	assert.Empty(t, w.locks)
	assert.NotEmpty(t, w.images)

	w.clock.Step(24 * time.Hour)
	w.run()
	assert.Equal(t, api.PhaseFailed, w.stored.Status.Phase, "that is not for Janus to decide")

	w.cancel(api.CancelRollback)
	w.run()
	assert.Equal(t, api.PhaseRolledBack, w.stored.Status.Phase, w.transcript())
	assert.Equal(t, int32(1), w.stored.Status.Recoveries)
	_, reason, message = told(w, api.ConditionSucceeded)
	assert.Equal(t, errclass.Cancelled, reason)
	assert.Equal(t, "the Transaction was cancelled (spec.cancel: Rollback, after Stop)", message)
	oracle(t, w)
}

func TestWhyAChangeWasRefusedIsNotForgottenForAStop(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.refuse["do c"] = errRefused
	w.after["undo b"] = func() { w.cancel(api.CancelStop) }
	w.run()
	require.Equal(t, api.PhaseFailed, w.stored.Status.Phase, w.transcript())
	w.cancel(api.CancelRollback)
	w.run()
	assert.Equal(t, api.PhaseRolledBack, w.stored.Status.Phase, w.transcript())
	_, reason, message := told(w, api.ConditionSucceeded)
	assert.Equal(t, errclass.Rejected, reason)
	assert.Contains(t, message, "denied")
}

// A Transaction that has ended is not behind with its spec for ever.
func TestWhatHasEndedSeesThatItsSpecWasChanged(t *testing.T) {
	w := newWorld(t, "a")
	w.run()
	conditions := w.stored.Status.Conditions
	w.cancel(api.CancelRollback)
	w.run()
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase)
	assert.Equal(t, w.stored.Generation, w.stored.Status.ObservedGeneration)
	for i, c := range w.stored.Status.Conditions {
		assert.Equal(t, conditions[i].Message, c.Message)
		assert.Equal(t, conditions[i].Status, c.Status)
		assert.Equal(t, c.Type == api.ConditionValidated, c.ObservedGeneration == 1, c.Type)
	}
}

func TestUnchangedKnowsASpecByAllButWhatMayChange(t *testing.T) {
	txn := fixture.Transaction("a", "b")
	txn.Status.ObservedGeneration = 1
	assert.True(t, plan.Unchanged(txn), "accepted by a version that kept no digest")
	txn.Generation = 2
	assert.False(t, plan.Unchanged(txn))
	txn.Status.SpecDigest = plan.SpecDigest(&txn.Spec)
	assert.True(t, plan.Unchanged(txn))
	txn.Spec.Suspend, txn.Spec.Cancel = true, api.CancelStop
	assert.True(t, plan.Unchanged(txn))
	txn.Spec.ConflictPolicy = api.ConflictForce
	assert.False(t, plan.Unchanged(txn))
	txn.Generation = 1
	assert.False(t, plan.Unchanged(txn), "whatever the generation says")
}

// One that is suspended while it prepares has nothing on record of that, and prepares again.
func TestATransactionThatIsSuspendedWhileItPreparesPreparesAgain(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.after["save"] = func() { w.suspend() }
	w.run()
	require.Equal(t, api.PhasePreparing, phaseOf(w), w.transcript())
	require.Empty(t, w.dos, w.transcript())
	delete(w.after, "save")
	w.resume()
	w.run()
	assert.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
	oracle(t, w)
}

// The last change turns out to be in effect after the Transaction was suspended. It is resumed before it
// ends, or its timeout would not count, and it would try to hand fields over for ever.
func TestATransactionThatEndsAfterASuspensionHasItsTimeout(t *testing.T) {
	w := newWorld(t, "a")
	w.stored.Spec.Timeout = ptr.To(api.Duration("20s"))
	w.replies["do a"] = []reply{{err: errLost}}
	w.after["do a: fails"] = w.suspend
	w.after[atRest] = func() {
		w.targets["a"], w.dos["a"] = wrote("a"), 1 // It lands late.
		w.restart()
		w.refuse["hand over"] = errBusy
		w.after["hand over: fails"] = func() { w.after["hand over: fails"] = w.resume }
	}
	w.run()
	assert.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
	assert.Equal(t, plan.ReasonManagerStays, w.stored.Status.Items[0].Reason)
	assert.Nil(t, w.stored.Status.SuspendTime)
	oracle(t, w)
}
