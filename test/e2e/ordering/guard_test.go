package ordering

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/sharedlease"
	"janus.io/janus/test/harness"
)

const signal = `{apiVersion: v1, kind: ConfigMap, metadata: {name: signal}, data: {light: "green"}}`

// guarded begins with a guard, changes something, and waits for a word before its last change.
const guarded = `
changes:
- {name: signal, type: Await, guard: true, target: {apiVersion: v1, kind: ConfigMap, name: signal}, readyWhen: {expression: object.data.light == 'green'}}
- {name: made, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: made}, content: {data: {a: b}}}
- {name: word, type: Await, target: {apiVersion: v1, kind: ConfigMap, name: word}, readyWhen: {expression: object != null}}
- {name: last, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: last}, content: {data: {a: b}}}
`

// half submits the Transaction and waits until its first change is made.
func half(e *harness.Env) {
	e.Submit("guarded", guarded)
	waits(e, "guarded", "word")
}

func removeSignal(t *testing.T, e *harness.Env) {
	t.Helper()
	require.NoError(t, e.Kube.CoreV1().ConfigMaps(e.Namespace).Delete(t.Context(), "signal", metav1.DeleteOptions{}))
}

func word(e *harness.Env) {
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: word}}`)
}

// A guard that holds to the end lets the Transaction commit. Until then its object is locked: no
// other Transaction changes it.
func TestAGuardHoldsFromTheFirstChangeToTheCommit(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Apply(signal)
	half(e)
	txn := e.Transaction("guarded")
	item := txn.Status.Items[0]
	assert.True(t, item.Guard)
	assert.NotEmpty(t, item.LockLease)
	assert.Nil(t, item.Before, "it is not changed")
	assert.Equal(t, e.Object("ConfigMap/signal").GetUID(), item.GuardUID)
	assert.Nil(t, txn.Status.GuardTime)

	e.Submit("other", `
changes:
- {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: signal}, content: {data: {light: "red"}}}
`)
	awaitsLock(e, "other")
	word(e)
	txn = e.Ended("guarded")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.NotNil(t, txn.Status.GuardTime)
	require.Equal(t, api.PhaseCommitted, e.Ended("other").Status.Phase)
	assert.Equal(t, "red", e.Value("ConfigMap/signal", "data", "light"))
	e.NothingLeft("guarded")
}

// awaitsLock waits until a Transaction waits for a lock, and returns what it says about that.
func awaitsLock(e *harness.Env, name string) (message string) {
	e.Await(name, "waiting for the lock", func(txn *api.Transaction) bool {
		var reason string
		_, reason, message = harness.Condition(txn, api.ConditionReconciling)
		return reason == errclass.LockHeld
	})
	return message
}

// signalLease is the Lease that locks the signal.
func signalLease(t *testing.T, e *harness.Env) *coordinationv1.Lease {
	t.Helper()
	_, name, _ := strings.Cut(e.Transaction("guarded").Status.Items[0].LockLease, "/")
	lease, err := e.Kube.CoordinationV1().Leases(e.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return lease
}

// Transactions that are guarded by the same object run side by side.
func TestGuardsOfOneObjectShareItsLock(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Apply(signal)
	half(e)
	beside := e.Run("beside", `
changes:
- {name: signal, type: Await, guard: true, target: {apiVersion: v1, kind: ConfigMap, name: signal}, readyWhen: {expression: object.data.light == 'green'}}
- {name: made, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: beside}, content: {data: {a: b}}}
`)
	require.Equal(t, api.PhaseCommitted, beside.Status.Phase, harness.Describe(beside))
	txn := e.Transaction("guarded")
	require.Equal(t, api.PhaseCommitting, txn.Status.Phase)
	assert.Equal(t, txn.Status.Items[0].LockLease, beside.Status.Items[0].LockLease)
	e.NothingLeft("beside")
	assert.Equal(t, []string{api.HolderOf(txn)}, sharedlease.By(signalLease(t, e)))
	word(e)
	require.Equal(t, api.PhaseCommitted, e.Ended("guarded").Status.Phase)
	e.NothingLeft("guarded")
	assert.Nil(t, signalLease(t, e))
}

// A Transaction that changes the object waits until those that are guarded by it have ended, and
// one that is guarded by it and comes later waits for that Transaction.
func TestWhoChangesTheObjectOfAGuardComesBeforeLaterGuards(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Apply(signal)
	half(e)
	e.Submit("other", `
changes:
- {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: signal}, content: {data: {light: "red"}}}
`)
	message := awaitsLock(e, "other")
	assert.Contains(t, message, "is held by Transaction "+e.Namespace+"/guarded; waiting until it is released or expires")
	e.Until("the Lease names who is next", func() bool {
		return sharedlease.NextOf(signalLease(t, e)) == api.HolderOf(e.Transaction("other"))
	})
	e.Submit("late", `
changes:
- {name: signal, type: Await, guard: true, target: {apiVersion: v1, kind: ConfigMap, name: signal}, readyWhen: {expression: object.data.light == 'red'}}
- {name: made, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: late}, content: {data: {a: b}}}
`)
	message = awaitsLock(e, "late")
	assert.Contains(t, message, "Transaction "+e.Namespace+"/other is waiting to have it alone")
	assert.Equal(t, "green", e.Value("ConfigMap/signal", "data", "light"))
	word(e)
	for _, name := range []string{"guarded", "other", "late"} {
		txn := e.Ended(name)
		require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
		e.NothingLeft(name)
	}
	assert.Nil(t, signalLease(t, e))
}

// A writer that gives up leaves the lock to those who share it.
func TestAWriterThatGivesUpKeepsNoGuardOut(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Apply(signal)
	half(e)
	e.Submit("other", `
timeout: 2s
changes:
- {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: signal}, content: {data: {light: "red"}}}
`)
	late := e.Ended("other")
	require.Equal(t, api.PhaseFailed, late.Status.Phase, harness.Describe(late))
	_, reason, _ := harness.Condition(late, api.ConditionSucceeded)
	assert.Equal(t, errclass.DeadlineExceeded, reason)
	e.NothingLeft("other")
	beside := e.Run("beside", `
changes:
- {name: signal, type: Await, guard: true, target: {apiVersion: v1, kind: ConfigMap, name: signal}, readyWhen: {expression: object.data.light == 'green'}}
`)
	require.Equal(t, api.PhaseCommitted, beside.Status.Phase, harness.Describe(beside))
	require.Equal(t, api.PhaseCommitting, e.Transaction("guarded").Status.Phase)
}

// What another client makes of the object is found right before the commit, and everything is
// rolled back.
func TestAGuardThatDoesNotHoldAnyMoreRollsEverythingBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(t *testing.T, e *harness.Env)
		says string
	}{
		"written": {func(_ *testing.T, e *harness.Env) { e.Merge("person", "ConfigMap/signal", `{"data":{"light":"red"}}`) }, "object.data.light == 'green' is false"},
		"deleted": {func(t *testing.T, e *harness.Env) { removeSignal(t, e) }, "the guard held, and does not right before the commit: ConfigMap "},
		"another": {func(t *testing.T, e *harness.Env) {
			removeSignal(t, e)
			e.Apply(signal)
		}, "is not the object that it was when it was found ready"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.Start()
			e.Apply(signal)
			half(e)
			c.act(t, e)
			word(e)
			txn := e.Ended("guarded")
			require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			_, reason, message := harness.Condition(txn, api.ConditionSucceeded)
			assert.Equal(t, errclass.GuardBroken, reason)
			assert.Contains(t, message, c.says)
			assert.Nil(t, e.Object("ConfigMap/made"))
			assert.Nil(t, e.Object("ConfigMap/last"))
			e.NothingLeft("guarded")
		})
	}
}

// A guard after the last change verifies it, and one of an object that must not exist is a guard
// like any other.
func TestAGuardVerifiesWhatWasChanged(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	txn := e.Run("verified", `
changes:
- {name: made, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: made}, content: {data: {a: b}}}
- {name: right, type: Await, guard: true, target: {apiVersion: v1, kind: ConfigMap, name: made}, readyWhen: {expression: object.data.a == 'b'}}
- {name: none, type: Await, guard: true, target: {apiVersion: v1, kind: ConfigMap, name: none}, readyWhen: {expression: object == null}}
`)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, e.Object("ConfigMap/made").GetUID(), txn.Status.Items[1].GuardUID)
	assert.Empty(t, txn.Status.Items[2].GuardUID)

	txn = e.Run("wrong", `
changes:
- {name: made, type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: made}, content: {data: {a: c}}}
- {name: right, type: Await, guard: true, target: {apiVersion: v1, kind: ConfigMap, name: made}, readyWhen: {expression: object.data.a == 'b', timeout: 1s}}
`)
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "b", e.Value("ConfigMap/made", "data", "a"))
}

func TestAGuardThatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	require.ErrorContains(t, e.TrySubmit("refused", `
changes:
- {type: Create, guard: true, target: {apiVersion: v1, kind: ConfigMap, name: a}, content: {data: {a: b}}}
`), "guard has a meaning for Await alone")
	txn := e.Run("unknown", `
changes:
- {type: Await, guard: true, target: {apiVersion: example.com/v9, kind: Nothing, name: a}, readyWhen: {expression: object == null}}
`)
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	_, reason, _ := harness.Condition(txn, api.ConditionSucceeded)
	assert.Equal(t, errclass.KindNotFound, reason)
}
