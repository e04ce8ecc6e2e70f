package engine

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

var (
	errMissing = errclass.New(errclass.Terminal, errclass.NotFound, "patch", "ConfigMap shop/a", "it does not exist").WithHint("make it with a Create")
	errDenied  = errclass.New(errclass.Terminal, errclass.AccessDenied, "patch", "ConfigMap shop/c", "ServiceAccount shop/deployer may not")
	// twoProblems are of different kinds.
	twoProblems = []plan.Problem{{Item: 0, Err: errMissing}, {Item: 2, Err: errDenied}}
)

// preflights are what happens before anything is taken for a Transaction.
var preflights = []scenario{
	{"two changes cannot be made", []string{"a", "b", "c"}, func(w *world) { w.problems = twoProblems }, api.PhaseFailed},
	{"a change cannot be made", []string{"a", "b"}, func(w *world) { w.problems = []plan.Problem{{Item: 1, Err: errRefused}} }, api.PhaseFailed},
	{"it is not known of one change whether it can be made, and another cannot", []string{"a", "b", "c"}, func(w *world) {
		w.problems = []plan.Problem{{Item: 0, Err: errBusy}, {Item: 2, Err: errDenied}}
	}, api.PhaseFailed},
	{"a change cannot be made and the record of that is lost", []string{"a", "b"}, func(w *world) {
		w.problems = []plan.Problem{{Item: 1, Err: errRefused}}
		w.replies["checkpoint"] = []reply{{err: errLost}}
	}, api.PhaseFailed},
	{"the pre-flight takes long", []string{"a", "b"}, func(w *world) { w.unfinished = 3 }, api.PhaseCommitted},
	{"the pre-flight takes long and the record of that is lost", []string{"a"}, func(w *world) {
		w.unfinished = 2
		w.replies["checkpoint"] = []reply{{err: errLost, lost: true}}
	}, api.PhaseCommitted},
	{"the pre-flight takes longer than the Transaction may", []string{"a", "b"}, func(w *world) {
		w.stored.Spec.Timeout = ptr.To(api.Duration("25s"))
		w.unfinished = 100
	}, api.PhaseFailed},
	{"a change is refused as long as another is not in effect", []string{"a", "b", "c"}, func(w *world) {
		w.deferredBy["b"] = "a"
	}, api.PhaseCommitted},
	{"such a change is refused when its turn comes", []string{"a", "b", "c"}, func(w *world) {
		w.deferredBy["c"] = "a"
		w.after["do b"] = func() { w.replies["save"] = []reply{{err: errRefused}} }
	}, api.PhaseRolledBack},
	{"a plan is made", []string{"a", "b", "c"}, dry(func(*world) {}), api.PhasePlanned},
	{"a plan of two changes of one object", []string{"a1", "b", "a2"}, dry(func(*world) {}), api.PhasePlanned},
	{"a plan of changes that cannot be made", []string{"a", "b", "c"}, dry(func(w *world) { w.problems = twoProblems }), api.PhaseFailed},
	{"the server is busy when a plan is made", []string{"a"}, dry(func(w *world) {
		w.replies["validate"] = []reply{{err: errBusy}, {err: errLost}}
	}), api.PhasePlanned},
	{"the record of a plan is lost", []string{"a"}, dry(func(w *world) {
		w.replies["checkpoint"] = []reply{{err: errLost}}
	}), api.PhasePlanned},
	{"the answer to the record of a plan is lost", []string{"a"}, dry(func(w *world) {
		w.replies["checkpoint"] = []reply{{err: errLost, lost: true}}
	}), api.PhasePlanned},
	{"a plan cannot be made in time", []string{"a"}, dry(func(w *world) {
		w.stored.Spec.Timeout = ptr.To(api.Duration("3s"))
		w.refuse["validate"] = errBusy
	}), api.PhaseFailed},
	{"a plan is cancelled", []string{"a"}, dry(func(w *world) { w.stored.Spec.Cancel = api.CancelStop }), api.PhaseFailed},
	{"a plan goes some time after it was made", []string{"a"}, dry(func(w *world) {
		w.stored.Spec.TTLSecondsAfterFinished = ptr.To(int32(60))
	}), ""},
	{"a plan is deleted before it is made", []string{"a"}, dry(func(w *world) {
		w.stored.Finalizers = []string{"somebody.else/finalizer"}
		w.delete()
		w.after["-- abandoned"] = func() { w.gone, w.stored = w.stored, nil }
	}), ""},
}

// dry makes a scenario one of a Transaction that is to be tried only.
func dry(set func(*world)) func(*world) {
	return func(w *world) {
		w.stored.Spec.DryRun = true
		set(w)
	}
}

// Whatever happens, nothing is taken for a Transaction that is to be tried only.
func TestAPlanTakesNothing(t *testing.T) {
	for _, s := range preflights {
		w := newWorld(t, s.items...)
		s.set(w)
		dry := w.stored.Spec.DryRun
		w.run()
		for _, line := range w.lines {
			for _, taken := range []string{"add the finalizer", "lock", "save", "do "} {
				assert.False(t, dry && strings.HasPrefix(line, taken), "%s:\n%s", s.name, w.transcript())
			}
		}
	}
}

func TestAPlanIsMadeOnceItIsNotSuspendedAnyMore(t *testing.T) {
	w := newWorld(t, "a")
	w.stored.Spec.DryRun, w.stored.Spec.Suspend = true, true
	w.run()
	assert.Equal(t, api.PhasePending, phaseOf(w))
	assert.NotNil(t, w.stored.Status.SuspendTime)
	assert.Empty(t, w.stored.Finalizers)
	w.resume()
	w.run()
	assert.Equal(t, api.PhasePlanned, phaseOf(w))
	oracle(t, w)
}

func TestAPlanThatIsMadeStaysAsItIs(t *testing.T) {
	for _, edit := range []func(*world){
		(*world).suspend, (*world).resume,
		func(w *world) { w.cancel(api.CancelRollback) },
		func(w *world) { w.cancel(api.CancelStop) },
	} {
		w := newWorld(t, "a")
		w.stored.Spec.DryRun = true
		w.run()
		edit(w)
		w.run()
		assert.Equal(t, api.PhasePlanned, phaseOf(w))
		assert.Equal(t, w.stored.Generation, w.stored.Status.ObservedGeneration, "it was looked at since")
		oracle(t, w)
	}
}

func TestAllProblemsAreReportedByItem(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	again := errclass.New(errclass.Terminal, errclass.AccessDenied, "get", "ConfigMap shop/c", "ServiceAccount shop/deployer may not")
	w.problems = append(twoProblems[:2:2], plan.Problem{Item: 2, Err: again})
	w.run()
	items, failed := w.stored.Status.Items, w.stored.Status.FailedItem
	assert.Equal(t, "a", failed)
	assert.Equal(t, []string{errclass.NotFound, "", errclass.AccessDenied}, []string{items[0].Reason, items[1].Reason, items[2].Reason})
	assert.Empty(t, items[1].Message)
	assert.Equal(t, errDenied.Error()+"; "+again.Error(), items[2].Message)
	validated := meta.FindStatusCondition(w.stored.Status.Conditions, api.ConditionValidated)
	assert.Equal(t, metav1.ConditionFalse, validated.Status)
	assert.Equal(t, "ValidationFailed", validated.Reason)
	assert.Contains(t, validated.Message, "3 problems with 2 of 3 changes (a, c): item a: patch ConfigMap shop/a: it does not exist")

	w = newWorld(t, "a", "b", "c")
	w.problems = []plan.Problem{{Item: 0, Err: errDenied}, {Item: 2, Err: again}}
	w.run()
	assert.Equal(t, errclass.AccessDenied, meta.FindStatusCondition(w.stored.Status.Conditions, api.ConditionValidated).Reason)
}

// Validated is True as soon as everything was tried, before the locks are held.
func TestWhatWasTriedIsOnRecordBeforeTheLocksAreHeld(t *testing.T) {
	w := newWorld(t, "a1", "b", "a2")
	w.locks["b"] = "another Transaction"
	_, _ = w.once()
	conditions := w.stored.Status.Conditions
	validated := meta.FindStatusCondition(conditions, api.ConditionValidated)
	assert.Equal(t, metav1.ConditionTrue, validated.Status)
	assert.Contains(t, validated.Message, "2 of 3 changes were tried without effect, and accepted; deferred: item a2 (item a1 changes it first)")
	require.False(t, meta.IsStatusConditionTrue(conditions, api.ConditionLocked))
}

// A pre-flight makes room for who waits for the worker: the run ends, and another one resumes it.
func TestAPreFlightMakesRoom(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.unfinished = 1
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.after["validate"] = cancel
	result := w.engine.Run(ctx, w.stored.DeepCopy())
	assert.True(t, result.Idle(), "who has taken the worker comes back")
	assert.Equal(t, api.PhasePending, w.stored.Status.Phase)
	assert.NotNil(t, w.stored.Status.StartTime, "its time runs")
	w.run()
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase)
}
