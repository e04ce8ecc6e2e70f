package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
	"janus.io/janus/internal/errclass"
)

// limits are easy to recognize.
var limits = Policy{Recoveries: 2, RecoveryDelay: 10 * time.Second, SettleTime: 7 * time.Second, Window: 1}

// with is a Transaction in a phase with items in the given states, held by its
// finalizer, accepted at the start of time.
func with(phase api.Phase, states ...api.ItemState) *api.Transaction {
	t := fixture.Transaction("a", "b", "c", "d")
	t.Finalizers = []string{api.Finalizer}
	t.Status = api.TransactionStatus{Phase: phase, ObservedGeneration: 1, StartTime: ptr.To(metav1.NewTime(fixture.Start))}
	for i, state := range states {
		item := api.Item{Name: t.Spec.Changes[i].Name, Target: t.Spec.Changes[i].Target}
		SetItemState(&item, state)
		t.Status.Items = append(t.Status.Items, item)
	}
	if len(states) > 0 {
		t.Spec.Changes = t.Spec.Changes[:len(states)]
	}
	if phase.Terminal() {
		t.Finalizers, t.Status.CompletionTime = nil, ptr.To(metav1.NewTime(fixture.Start))
	}
	return t
}

func deleted(policy api.DeletePolicy, t *api.Transaction) *api.Transaction {
	t.DeletionTimestamp, t.Spec.OnDelete = ptr.To(metav1.NewTime(fixture.Start)), policy
	t.Generation++
	return t
}

func changed(t *api.Transaction) *api.Transaction {
	t.Generation++
	return t
}

// edited has an item less, or more, than the spec has changes.
func edited(changes int, t *api.Transaction) *api.Transaction {
	t.Spec.Changes = fixture.Transaction("a", "b", "c", "d").Spec.Changes[:changes]
	return t
}

func bare(t *api.Transaction) *api.Transaction {
	t.Finalizers = nil
	return t
}

func held(t *api.Transaction) *api.Transaction {
	t.Finalizers = []string{api.Finalizer}
	return t
}

// failed has one item that could not be rolled back, and its before-image.
func failed(reason string, recoveries int32) *api.Transaction {
	t := with(api.PhaseFailed, api.ItemUnresolved, api.ItemRolledBack)
	t.Status.Items[0].Reason = reason
	t.Status.Recoveries, t.Status.RollbackRef = recoveries, &api.RollbackRef{Name: "x"}
	return t
}

func lostImages(t *api.Transaction) *api.Transaction {
	t.Status.RollbackRef = nil
	return t
}

func suspendedSpec(t *api.Transaction) *api.Transaction {
	t.Spec.Suspend = true
	return t
}

// atRestSince is one that is recorded to be suspended.
func atRestSince(t *api.Transaction) *api.Transaction {
	t.Status.SuspendTime = ptr.To(metav1.NewTime(fixture.Start))
	return t
}

func cancelled(t *api.Transaction, how api.CancelPolicy) *api.Transaction {
	t.Spec.Cancel = how
	return t
}

func tryOnly(t *api.Transaction) *api.Transaction {
	t.Spec.DryRun = true
	return t
}

// fresh has the intents of these items, and nothing else.
func fresh(these ...int) InFlight {
	h := InFlight{Known: Known{}}
	for _, i := range these {
		h.Known[i] = Unsent
	}
	return h
}

func TestDecide(t *testing.T) {
	const (
		pending, prepared, committing, committed = api.ItemPending, api.ItemPrepared, api.ItemCommitting, api.ItemCommitted
		rejected, rollingBack, rolledBack, left  = api.ItemRejected, api.ItemRollingBack, api.ItemRolledBack, api.ItemUnresolved
		none                                     = -1
	)
	tests := []struct {
		name  string
		txn   *api.Transaction
		fresh int
		after time.Duration // since the fixture.Start
		verb  Verb
		item  int
		cause string
	}{
		{"a new Transaction gets the finalizer first", bare(with("")), none, 0, AddFinalizer, 0, ""},
		{"a Transaction that lost its finalizer gets it again before a change", bare(with(api.PhaseCommitting, committing)), none, 0, AddFinalizer, 0, ""},
		{"one with the finalizer is validated", with(""), none, 0, Validate, 0, ""},
		{"one that is to be tried only needs no finalizer", tryOnly(bare(with(""))), none, 0, Validate, 0, ""},
		{"one that is to be tried only stands still", suspendedSpec(tryOnly(bare(with("")))), none, 0, Suspend, 0, ""},
		{"one that is to be tried only is cancelled", cancelled(tryOnly(bare(with(""))), api.CancelRollback), none, 0, Fail, 0, errclass.Cancelled},
		{"a planned one is done", tryOnly(bare(with(api.PhasePlanned, pending))), none, 0, Nothing, 0, ""},
		{"a Pending one is validated", with(api.PhasePending), none, 0, Validate, 0, ""},
		{"a valid one is prepared", with(api.PhasePreparing, pending, pending), none, 0, Prepare, 0, ""},
		{"a prepared one begins", with(api.PhasePrepared, prepared, prepared), none, 0, Begin, 0, ""},

		{"an intent that this run has recorded is acted on", with(api.PhaseCommitting, committing, prepared), 0, 0, Do, 0, ""},
		{"an intent that another process has recorded is looked into", with(api.PhaseCommitting, committing, prepared), none, 0, Observe, 0, ""},
		{"only the fresh intent is acted on", with(api.PhaseCommitting, committed, committing), 0, 0, Observe, 1, ""},
		{"an intent that was not opened with the checkpoint before is opened", with(api.PhaseCommitting, committed, prepared), none, 0, Open, 1, ""},
		{"a before-image that was not taken with the others is taken", with(api.PhaseCommitting, committed, pending, prepared), none, 0, Capture, 1, ""},
		{"when every change is in effect it ends", with(api.PhaseCommitting, committed, committed), none, 0, Finish, 0, ""},
		{"that the finalizer is gone already does not keep it from ending", bare(with(api.PhaseCommitting, committed)), none, 0, Finish, 0, ""},

		{"an open intent is settled before anything is rolled back", with(api.PhaseRollingBack, committed, committing, prepared), none, 0, ObserveUndo, 1, ""},
		{"the last change is the first to be rolled back", with(api.PhaseRollingBack, committed, committed, rejected), none, 0, OpenUndo, 1, ""},
		{"an intent to roll back is acted on", with(api.PhaseRollingBack, committed, rollingBack, rolledBack), none, 0, Undo, 1, ""},
		{"an item that cannot be rolled back does not stop the others", with(api.PhaseRollingBack, committed, left, prepared), none, 0, OpenUndo, 0, ""},
		{"when nothing is left to roll back it ends", with(api.PhaseRollingBack, rolledBack, rejected, prepared, pending), none, 0, FinishUndo, 0, ""},
		{"that something could not be rolled back does not keep it from ending", with(api.PhaseRollingBack, left, rolledBack), none, 0, FinishUndo, 0, ""},
		{"that the finalizer is gone already does not keep a rollback from ending", bare(with(api.PhaseRollingBack, rolledBack)), none, 0, FinishUndo, 0, ""},

		{"a committed one is done", with(api.PhaseCommitted, committed), none, 0, Nothing, 0, ""},
		{"a rolled back one is done", with(api.PhaseRolledBack, rolledBack), none, 0, Nothing, 0, ""},
		{"one whose spec was invalid is done", with(api.PhaseFailed), none, 0, Nothing, 0, ""},

		// Deletion, in every phase.
		{"deleted before it was seen, it is let go", bare(deleted(api.DeleteRelease, with(""))), none, 0, Abandon, 0, ""},
		{"deleted while Pending, it is let go", deleted(api.DeleteRollback, with(api.PhasePending)), none, 0, Abandon, 0, ""},
		{"deleted while Preparing, it is let go", deleted(api.DeleteRollback, with(api.PhasePreparing, pending)), none, 0, Abandon, 0, ""},
		{"deleted while Prepared, it is let go, for nothing was changed", deleted(api.DeleteRollback, with(api.PhasePrepared, prepared)), none, 0, Abandon, 0, ""},
		{"deleted while Committing, it leaves its changes", deleted(api.DeleteRelease, with(api.PhaseCommitting, committed, committing)), none, 0, Abandon, 0, ""},
		{"deleted while Committing, it rolls them back if asked to", deleted(api.DeleteRollback, with(api.PhaseCommitting, committed, committing)), none, 0, StartRollback, 0, errclass.Cancelled},
		{"deleted when every change is in effect, it ends as Committed", deleted(api.DeleteRollback, with(api.PhaseCommitting, committed)), none, 0, Finish, 0, ""},
		{"deleted while RollingBack, it goes on, whatever it was asked", deleted(api.DeleteRelease, with(api.PhaseRollingBack, committed)), none, 0, OpenUndo, 0, ""},
		{"deleted and RolledBack with its finalizer, it is let go", held(deleted(api.DeleteRelease, with(api.PhaseRolledBack, rolledBack))), none, 0, Abandon, 0, ""},
		{"deleted and Committed with its finalizer, it is let go", held(deleted(api.DeleteRollback, with(api.PhaseCommitted, committed))), none, 0, Abandon, 0, ""},
		{"deleted and Failed with its finalizer, it is let go", held(deleted(api.DeleteRollback, failed(errclass.AccessDenied, 0))), none, time.Hour, Abandon, 0, ""},
		{"deleted and ended without the finalizer, it is another client's to let go", deleted(api.DeleteRelease, with(api.PhaseCommitted, committed)), none, 0, Nothing, 0, ""},

		// Timeout.
		{"waiting for too long while Pending, it fails", with(api.PhasePending), none, time.Hour, Fail, 0, errclass.DeadlineExceeded},
		{"waiting for too long while Preparing, it fails", with(api.PhasePreparing, pending), none, time.Hour, Fail, 0, errclass.DeadlineExceeded},
		{"waiting for too long when Prepared, it fails", with(api.PhasePrepared, prepared), none, time.Hour, Fail, 0, errclass.DeadlineExceeded},
		{"changing for too long, it turns", with(api.PhaseCommitting, committed, committing), 1, time.Hour, StartRollback, 0, errclass.DeadlineExceeded},
		{"at the very end of its time it goes on", with(api.PhaseCommitting, committed, committing), 1, 30 * time.Minute, Do, 1, ""},
		{"when every change is in effect, the time does not matter", with(api.PhaseCommitting, committed), none, time.Hour, Finish, 0, ""},
		{"the time does not stop a rollback", with(api.PhaseRollingBack, committed), none, time.Hour, OpenUndo, 0, ""},

		// The spec.
		{"a spec that changes while Pending is validated as it is", changed(with(api.PhasePending)), none, 0, Validate, 0, ""},
		{"a spec that changes while Preparing is refused", changed(with(api.PhasePreparing, pending)), none, 0, Fail, 0, errclass.SpecChanged},
		{"a spec that changes when Prepared is refused", changed(with(api.PhasePrepared, prepared)), none, 0, Fail, 0, errclass.SpecChanged},
		{"a spec that changes while Committing makes it turn", changed(with(api.PhaseCommitting, committed, committing)), 1, 0, StartRollback, 0, errclass.SpecChanged},
		{"items that are edited away are refused", edited(3, with(api.PhasePreparing, pending, pending)), none, 0, Fail, 0, errclass.SpecChanged},
		{"items that are edited in make it turn", edited(1, with(api.PhaseCommitting, committed, committing)), none, 0, StartRollback, 0, errclass.SpecChanged},
		{"a spec that changes while RollingBack does not matter", changed(with(api.PhaseRollingBack, committed)), none, 0, OpenUndo, 0, ""},
		{"a spec that changes afterwards is seen", changed(with(api.PhaseCommitted, committed)), none, 0, ObserveGeneration, 0, ""},

		// Suspension.
		{"one that is created suspended", suspendedSpec(fixture.Transaction("a")), none, 0, Suspend, 0, ""},
		{"one that stays as it was created", atRestSince(suspendedSpec(fixture.Transaction("a"))), none, 0, StaySuspended, 0, ""},
		{"one that goes on after the last change", atRestSince(with(api.PhaseCommitting, committed)), none, 0, Resume, 0, ""},
		{"one that goes on", atRestSince(with(api.PhaseCommitting, committed, prepared)), none, 0, Resume, 0, ""},
		{"suspended while it prepares", suspendedSpec(with(api.PhasePreparing, pending)), none, 0, Suspend, 0, ""},
		{"suspended before the first intent", suspendedSpec(with(api.PhasePrepared, prepared)), none, 0, Suspend, 0, ""},
		{"suspended with an intent that was not acted on", suspendedSpec(with(api.PhaseCommitting, committing, prepared)), 0, 0, Suspend, 0, ""},
		{"stopped with a compensation that was not acted on", cancelled(with(api.PhaseRollingBack, committed, rollingBack), api.CancelStop), 1, 0, AcceptPartial, 0, ""},
		{"suspended with a compensation that was not acted on", suspendedSpec(with(api.PhaseRollingBack, committed, rollingBack)), 1, 0, Suspend, 0, ""},
		{"suspended with an open intent", suspendedSpec(with(api.PhaseCommitting, committing, prepared)), none, 0, Observe, 0, ""},
		{"suspended between two changes", suspendedSpec(with(api.PhaseCommitting, committed, prepared)), none, 0, Suspend, 0, ""},
		{"suspended before a late before-image", atRestSince(suspendedSpec(with(api.PhaseCommitting, committed, pending))), none, 0, StaySuspended, 0, ""},
		{"suspended after the last change", suspendedSpec(with(api.PhaseCommitting, committed)), none, 0, Finish, 0, ""},
		{"suspended with an open compensation", suspendedSpec(with(api.PhaseRollingBack, committed, rollingBack)), none, 0, SkipUndo, 1, ""},
		{"suspended between two compensations", suspendedSpec(with(api.PhaseRollingBack, committed, rolledBack)), none, 0, Suspend, 0, ""},
		{"suspended and being deleted", deleted(api.DeleteRollback, suspendedSpec(with(api.PhaseRollingBack, committed, rolledBack))), none, 0, OpenUndo, 0, ""},
		{"suspended before a recovery", suspendedSpec(failed(errclass.AccessDenied, 0)), none, time.Hour, Nothing, 0, ""},

		// Cancellation.
		{"cancelled before it was seen", cancelled(fixture.Transaction("a"), api.CancelRollback), none, 0, AddFinalizer, 0, ""},
		{"cancelled before the first intent", cancelled(with(api.PhasePrepared, prepared), api.CancelStop), none, 0, Fail, 0, errclass.Cancelled},
		{"cancelled between two changes", cancelled(with(api.PhaseCommitting, committed, prepared), api.CancelRollback), none, 0, StartRollback, 0, errclass.Cancelled},
		{"suspended and cancelled", cancelled(suspendedSpec(with(api.PhaseCommitting, committed, prepared)), api.CancelStop), none, 0, StartRollback, 0, errclass.Cancelled},
		{"stopped with an open intent", cancelled(with(api.PhaseRollingBack, committed, committing), api.CancelStop), none, 0, ObserveUndo, 1, ""},
		{"stopped with an open compensation", cancelled(with(api.PhaseRollingBack, committed, rollingBack), api.CancelStop), none, 0, SkipUndo, 1, ""},
		{"stopped", cancelled(with(api.PhaseRollingBack, committed, rolledBack), api.CancelStop), none, 0, AcceptPartial, 0, ""},
		{"stopped before a recovery", cancelled(failed(errclass.AccessDenied, 0), api.CancelStop), none, time.Hour, Nothing, 0, ""},
		{"stopped when a recovery had begun to hold it", held(cancelled(failed(errclass.AccessDenied, 0), api.CancelStop)), none, time.Hour, CleanUp, 0, ""},
		{"what was left is wanted back", cancelled(failed(errclass.Cancelled, 2), api.CancelRollback), none, 0, Recover, 0, ""},
		{"what was left is not wanted back any more when a recovery has begun to hold it", held(failed(errclass.Cancelled, 0)), none, time.Hour, CleanUp, 0, ""},
		{"what was left stays", failed(errclass.Cancelled, 0), none, time.Hour, Nothing, 0, ""},

		// Recovery.
		{"a failed rollback waits before it is taken up", failed(errclass.AccessDenied, 0), none, 9 * time.Second, Await, 0, ""},
		{"a failed rollback is taken up", failed(errclass.AccessDenied, 0), none, 10 * time.Second, Recover, 0, ""},
		{"the second time it waits longer", failed(errclass.AccessDenied, 1), none, 39 * time.Second, Await, 0, ""},
		{"a failed rollback is taken up again", failed(errclass.AccessDenied, 1), none, 40 * time.Second, Recover, 0, ""},
		{"a failed rollback is not taken up for ever", failed(errclass.AccessDenied, 2), none, 24 * time.Hour, Nothing, 0, ""},
		{"a rollback without its before-images is not taken up", lostImages(failed(errclass.AccessDenied, 0)), none, time.Hour, Nothing, 0, ""},
		{"a rollback that met somebody's write is not taken up", failed(errclass.Drifted, 0), none, time.Hour, Nothing, 0, ""},
		{"a rollback that met another owner is not taken up", failed(errclass.FieldConflict, 0), none, time.Hour, Nothing, 0, ""},
		{"a rollback that met another object is not taken up", failed(errclass.AlreadyExists, 0), none, time.Hour, Nothing, 0, ""},
		{"a rollback with a tampered before-image is not taken up", failed(errclass.BeforeImageTampered, 0), none, time.Hour, Nothing, 0, ""},
		{"a rollback with a lost before-image is not taken up", failed(errclass.BeforeImageLost, 0), none, time.Hour, Nothing, 0, ""},
		{"a rollback of what cannot be undone is not taken up", failed(errclass.Irreversible, 0), none, time.Hour, Nothing, 0, ""},
	}
	seen := map[Verb]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := tt.txn.DeepCopy()
			got := Decide(tt.txn, fresh(tt.fresh), fixture.Start.Add(tt.after), limits)
			seen[got.Verb] = true
			assert.Equal(t, tt.verb, got.Verb)
			assert.Equal(t, tt.item, got.Item)
			assert.Equal(t, tt.cause, got.Cause.Reason)
			assert.Equal(t, tt.cause == "", got.Cause.Message == "", "a cause has a message")
			assert.Equal(t, before, tt.txn, "Decide changes nothing")
			assert.Equal(t, tt.verb == Await, !got.At.IsZero())
		})
	}
	for _, verb := range []Verb{
		Nothing, Await, AddFinalizer, Validate, Prepare, Begin, Capture, Open, Do, Observe, Finish,
		Fail, StartRollback, ObserveUndo, OpenUndo, Undo, FinishUndo, Recover, Abandon, Suspend, StaySuspended, Resume, AcceptPartial, ObserveGeneration, CleanUp,
	} {
		assert.True(t, seen[verb], "no case decides %s", verb)
	}
}

func TestDurationsThatAreMissingOrMalformedMeanTheDefault(t *testing.T) {
	txn := fixture.Transaction("a")
	assert.Equal(t, DefaultTimeout, Timeout(txn))
	assert.Equal(t, DefaultLockTimeout, LockTimeout(txn))
	for text, want := range map[api.Duration]time.Duration{
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "": DefaultTimeout, "soon": DefaultTimeout, "-1s": DefaultTimeout, "0s": DefaultTimeout,
	} {
		txn.Spec.Timeout = &text
		assert.Equal(t, want, Timeout(txn), "%q", text)
	}
}

// What was in the way of a compensation may be a later change of the same object that
// is not rolled back yet.
func TestARecoveryTakesUpWhatALaterChangeOfTheObjectStoodInTheWayOf(t *testing.T) {
	items := fixture.Transaction("a1", "b", "a2", "c").Spec.Changes
	unresolved := func(reasons ...string) (out []api.Item) {
		for i, reason := range reasons {
			out = append(out, api.Item{Name: items[i].Name, Target: items[i].Target, State: api.ItemUnresolved, Reason: reason})
		}
		return out
	}
	assert.Equal(t, []int{2, 0}, hopeful(unresolved(errclass.FieldConflict, errclass.FieldConflict, errclass.AccessDenied, errclass.Drifted)))
	assert.Equal(t, []int{2, 0}, hopeful(unresolved(errclass.Blocked, errclass.FieldConflict, errclass.AccessDenied, errclass.Drifted)))
	assert.Equal(t, []int{1}, hopeful(unresolved(errclass.FieldConflict, errclass.AccessDenied, errclass.FieldConflict, errclass.Drifted)))
}
