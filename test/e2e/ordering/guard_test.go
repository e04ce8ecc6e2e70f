package ordering

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
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
	e.Await("other", "waiting for the lock", func(other *api.Transaction) bool {
		_, reason, _ := harness.Condition(other, api.ConditionReconciling)
		return reason == errclass.LockHeld
	})
	word(e)
	txn = e.Ended("guarded")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.NotNil(t, txn.Status.GuardTime)
	require.Equal(t, api.PhaseCommitted, e.Ended("other").Status.Phase)
	assert.Equal(t, "red", e.Value("ConfigMap/signal", "data", "light"))
	e.NothingLeft("guarded")
}

// Transactions that are guarded by the same object run one after the other.
func TestGuardsOfOneObjectRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Apply(signal)
	half(e)
	e.Submit("beside", `
changes:
- {name: signal, type: Await, guard: true, target: {apiVersion: v1, kind: ConfigMap, name: signal}, readyWhen: {expression: object.data.light == 'green'}}
`)
	e.Await("beside", "waiting for the lock", func(other *api.Transaction) bool {
		_, reason, _ := harness.Condition(other, api.ConditionReconciling)
		return reason == errclass.LockHeld
	})
	word(e)
	require.Equal(t, api.PhaseCommitted, e.Ended("guarded").Status.Phase)
	require.Equal(t, api.PhaseCommitted, e.Ended("beside").Status.Phase)
	e.NothingLeft("guarded")
	e.NothingLeft("beside")
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
