package ordering

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// waits waits until a Transaction says that it waits for something.
func waits(e *harness.Env, name, what string) {
	e.Await(name, "waiting for "+what, func(txn *api.Transaction) bool {
		_, _, message := harness.Condition(txn, api.ConditionReconciling)
		return strings.Contains(message, what)
	})
}

// An Await in the middle waits for an object that another client makes, of a kind that is
// installed only meanwhile. Later conditions see it by the name of the item. It takes no lock,
// and an undo does not know of it.
func TestAnAwaitWaitsForAnObjectOfAKindThatIsNotServedYet(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	group := strings.ReplaceAll(e.Namespace, "-", "") + ".example.com"
	e.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: cups}
rules: [{apiGroups: [` + group + `], resources: [cups], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: cups}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: cups}
subjects: [{kind: ServiceAccount, name: deployer}]
`)
	e.Submit("later", `
timeout: 2m
revisionHistoryLimit: 1
changes:
- {name: before, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: before}, content: {data: {a: b}}}
- name: cup
  type: Await
  target: {apiVersion: `+group+`/v1, kind: Cup, name: mine}
  readyWhen: {expression: object.spec.size > 1}
- {name: after, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: after}, content: {data: {a: b}}, when: objects.cup.spec.size == 2}
`)
	waits(e, "later", "object.spec.size > 1")
	require.NotNil(t, e.Object("ConfigMap/before"))
	fixture.DefineCups(t, e, fixture.CupVersion("v1", true, "size: {type: integer}"))
	e.Apply(`{apiVersion: ` + group + `/v1, kind: Cup, metadata: {name: mine}, spec: {size: 1}}`)
	waits(e, "later", "object.spec.size > 1 is false")
	require.Nil(t, e.Object("ConfigMap/after"), "the change after it is made only then")
	cup := e.Merge("another", group+"/v1 Cup/mine", `{"spec":{"size":2}}`)

	txn := e.Ended("later")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	require.NotNil(t, e.Object("ConfigMap/after"))
	item := txn.Status.Items[1]
	assert.Equal(t, api.Await, item.Type)
	assert.Empty(t, item.LockLease)
	assert.Nil(t, item.Before)
	require.NotNil(t, item.ReadyTime)
	e.Same(cup, group+"/v1 Cup/mine")

	undo := e.Run("undo", "undoOf: {name: later}")
	require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
	require.Len(t, undo.Status.Items, 2, "only what was changed is undone")
	assert.Nil(t, e.Object("ConfigMap/before"))
	e.Same(cup, group+"/v1 Cup/mine")
}

// failWhen ends a wait at once, and the message is what the object says. Nothing is left of
// what was changed before.
func TestAWaitFailsAtOnceWithTheObjectsOwnMessage(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Submit("failing", `
changes:
- {type: Create, target: {apiVersion: v1, kind: ConfigMap, name: made}, content: {data: {a: b}}}
- name: verdict
  type: Await
  target: {apiVersion: v1, kind: ConfigMap, name: verdict}
  readyWhen: {expression: object.data.passed == 'true'}
  failWhen: {expression: object.data.passed == 'false', messageExpression: "'the smoke test says: ' + object.data.why"}
`)
	waits(e, "failing", "verdict")
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: verdict}, data: {passed: "false", why: "500 on /pay"}}`)
	txn := e.Ended("failing")
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	_, reason, message := harness.Condition(txn, api.ConditionSucceeded)
	assert.Equal(t, errclass.ReadyFailed, reason)
	assert.Contains(t, message, "ConfigMap "+e.Namespace+"/verdict: the smoke test says: 500 on /pay")
	assert.Equal(t, api.ItemRolledBack, txn.Status.Items[1].State)
	assert.Equal(t, errclass.ReadyFailed, txn.Status.Items[1].Reason)
	assert.Nil(t, e.Object("ConfigMap/made"))
	e.NothingLeft("failing")
}

// What a Secret holds does not get into a message, whatever the expressions ask for.
func TestAWaitTellsNothingOfASecret(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Apply(`{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {state: broken, value: hunter2}}`)
	txn := e.Run("secret", `
changes:
- name: key
  type: Await
  target: {apiVersion: v1, kind: Secret, name: key}
  readyWhen: {expression: "false"}
  failWhen: {expression: has(object.data.value), messageExpression: object.data.value}
`)
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	_, reason, message := harness.Condition(txn, api.ConditionSucceeded)
	assert.Equal(t, errclass.ReadyFailed, reason)
	assert.Contains(t, message, "failWhen is true (has(object.data.value))")
	assert.NotContains(t, harness.Describe(txn), "hunter2")
}

// holdFor counts from when the condition holds without a break.
func TestAWaitHasToHold(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: signal}, data: {light: "green"}}`)
	e.Submit("soak", `
changes:
- {type: Create, target: {apiVersion: v1, kind: ConfigMap, name: made}, content: {data: {a: b}}}
- name: signal
  type: Await
  target: {apiVersion: v1, kind: ConfigMap, name: signal}
  readyWhen: {expression: object.data.light == 'green', holdFor: 6s}
`)
	e.Await("soak", "holding", func(txn *api.Transaction) bool {
		return len(txn.Status.Items) == 2 && txn.Status.Items[1].HoldStartTime != nil
	})
	e.Merge("another", "ConfigMap/signal", `{"data":{"light":"red"}}`)
	e.Await("soak", "not holding", func(txn *api.Transaction) bool { return txn.Status.Items[1].HoldStartTime == nil })
	again := time.Now().Truncate(time.Second) // Times are kept by the second.
	e.Merge("another", "ConfigMap/signal", `{"data":{"light":"green"}}`)
	txn := e.Ended("soak")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	item := txn.Status.Items[1]
	assert.False(t, item.HoldStartTime.Before(&metav1.Time{Time: again}), "it starts again")
	assert.GreaterOrEqual(t, item.ReadyTime.Sub(item.HoldStartTime.Time), 6*time.Second)
}

// An Await that is first is an assertion: if it fails, no change has been made. Its
// ServiceAccount has to be able to read what it waits for, which is found out before.
func TestAnAwaitAtTheBeginningIsAnAssertion(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Submit("assert", `
changes:
- {name: approved, type: Await, target: {apiVersion: v1, kind: ConfigMap, name: approval}, readyWhen: {expression: object != null, timeout: 2s}}
- {type: Create, target: {apiVersion: v1, kind: ConfigMap, name: made}, content: {data: {a: b}}}
`)
	txn := e.Ended("assert")
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	_, reason, message := harness.Condition(txn, api.ConditionSucceeded)
	assert.Equal(t, errclass.ReadyTimeout, reason)
	assert.Contains(t, message, "not ready within 2s: ConfigMap "+e.Namespace+"/approval: object != null is false")
	assert.Equal(t, api.ItemPrepared, txn.Status.Items[1].State, "no change was made")
	e.NothingLeft("assert")

	txn = e.Run("denied", `
changes:
- {type: Await, target: {apiVersion: v1, kind: Node, name: none}, readyWhen: {status: Ready}}
`)
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	_, reason, message = harness.Condition(txn, api.ConditionSucceeded)
	assert.Equal(t, errclass.AccessDenied, reason)
	assert.Contains(t, message, "grant it get on nodes")
}

// What cannot be meant is refused when the Transaction is created, or before it begins.
func TestAnAwaitThatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	const on = `target: {apiVersion: v1, kind: ConfigMap, name: a}`
	for spec, want := range map[string]string{
		`{type: Await, ` + on + `}`: "an Await needs readyWhen",
		`{type: Await, ` + on + `, readyWhen: {status: Ready}, content: {data: {a: b}}}`:                               "has no meaning for Delete and Await",
		`{type: Await, ` + on + `, readyWhen: {status: Ready}, acceptLoss: true}`:                                      "acceptLoss has no meaning",
		`{type: Create, ` + on + `, content: {data: {a: b}}, failWhen: {expression: "true"}}`:                          "failWhen has a meaning only beside readyWhen or goneWhen",
		`{type: Await, ` + on + `, readyWhen: {status: Ready, holdFor: 1m, timeout: 30s}}`:                             "holdFor must be shorter than timeout",
		`{type: Await, ` + on + `, readyWhen: {status: Ready}, failWhen: {expression: "true", messageExpression: ""}}`: "messageExpression",
	} {
		require.ErrorContains(t, e.TrySubmit("refused", "changes:\n- "+spec+"\n"), want)
	}
	txn := e.Run("wrong", `
changes:
- {type: Await, `+on+`, readyWhen: {status: Ready}, failWhen: {expression: object != null, messageExpression: "1 + 1"}}
`)
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase)
	_, reason, message := harness.Condition(txn, api.ConditionSucceeded)
	assert.Equal(t, errclass.Invalid, reason)
	assert.Contains(t, message, "compile failWhen.messageExpression of ConfigMap")
	assert.Contains(t, message, "it is of type int, and must be text")
}
