package ordering

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// restorable changes two ConfigMaps, of which the second says by a label of another client
// whether it works again; and something that is refused, unless it is left out.
const restorable = `
- {name: first, type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: first}, content: {data: {v: "2"}}}
- name: second
  type: Patch
  target: {apiVersion: v1, kind: ConfigMap, name: second}
  content: {data: {v: "2"}}
  dependsOn: [first]
  rollback: {readyWhen: {expression: "has(object.metadata.labels) && object.metadata.labels['works'] == object.data.v"%s}}
`

const twoMaps = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: first}, data: {v: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: second}, data: {v: "1"}}
`

const never = `
- {name: never, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: never}, content: {data: {a: b}}, dependsOn: [second], readyWhen: {expression: "false", timeout: 1s}}
`

// A compensation is waited for before what it depends on is rolled back, and before the end.
func TestACompensationIsWaitedForBeforeTheNext(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Apply(twoMaps)
	e.Submit("back", "changes:"+fmt.Sprintf(restorable, "")+never)
	waits(e, "back", "ConfigMap "+e.Namespace+"/second")
	e.Await("back", "restored", func(txn *api.Transaction) bool { return txn.Status.Items[1].RollbackWait != nil })
	txn := e.Transaction("back")
	assert.Equal(t, api.PhaseRollingBack, txn.Status.Phase)
	assert.Equal(t, api.ItemRollingBack, txn.Status.Items[1].State)
	assert.True(t, txn.Status.Items[1].RolledBack)
	assert.Equal(t, "1", e.Value("ConfigMap/second", "data", "v"))
	assert.Equal(t, "2", e.Value("ConfigMap/first", "data", "v"), "what it depends on stays until it is ready")

	e.Merge("operator", "ConfigMap/second", `{"metadata":{"labels":{"works":"1"}}}`)
	txn = e.Ended("back")
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.NotNil(t, txn.Status.Items[1].RollbackWait.ReadyTime)
	assert.Equal(t, "1", e.Value("ConfigMap/first", "data", "v"))
	assert.Equal(t, errclass.ReadyTimeout, txn.Status.Items[2].Reason)
	assert.Equal(t, api.ConditionRollbackReadyWhen, txn.Status.Items[1].Results[0].Condition)
	assert.True(t, txn.Status.Items[1].Results[0].Holds)
	e.NothingLeft("back")
}

// What does not become ready is restored, and said to be that. What it depends on stays in effect
// until a recovery finds it ready.
func TestACompensationThatIsNotReadyIsWaitedForAgainByARecovery(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Apply(twoMaps)
	e.Submit("back", "changes:"+fmt.Sprintf(restorable, ", timeout: 2s")+never)
	txn := e.Ended("back")
	require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	first, second := txn.Status.Items[0], txn.Status.Items[1]
	assert.Equal(t, api.ItemUnresolved, second.State)
	assert.Equal(t, errclass.RollbackNotReady, second.Reason)
	assert.Contains(t, second.Message, "restored, but not ready within 2s: ConfigMap "+e.Namespace+"/second: has(object.metadata.labels)")
	assert.True(t, second.RolledBack)
	assert.False(t, second.Committed)
	assert.Equal(t, errclass.Blocked, first.Reason)
	assert.Equal(t, "second", first.BlockedBy)
	assert.Equal(t, "2", e.Value("ConfigMap/first", "data", "v"))

	was := e.Merge("operator", "ConfigMap/second", `{"metadata":{"labels":{"works":"1"}}}`)
	e.Merge("operator", "backup.janus.io/v1alpha1 Transaction/back", `{"metadata":{"annotations":{"`+api.RecoverAnnotation+`":"now"}}}`)
	e.Await("back", "recovered", func(txn *api.Transaction) bool { return txn.Status.Phase == api.PhaseRolledBack })
	assert.Equal(t, "1", e.Value("ConfigMap/first", "data", "v"))
	e.Same(was, "ConfigMap/second")
	e.NothingLeft("back")
}

// An undo waits for the same, and rolls itself back if that does not come.
func TestAnUndoWaitsForWhatTheRollbackWouldWaitFor(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Apply(twoMaps)
	txn := e.Run("made", "revisionHistoryLimit: 5\nchanges:"+fmt.Sprintf(restorable, ", timeout: 4s"))
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))

	txn = e.Run("too-early", "undoOf: {name: made}")
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	require.NotNil(t, txn.Status.Items[0].ReadyWhen, "it is on record with the undo")
	assert.Equal(t, errclass.ReadyTimeout, txn.Status.Items[0].Reason)
	assert.Equal(t, "2", e.Value("ConfigMap/first", "data", "v"))
	assert.Equal(t, "2", e.Value("ConfigMap/second", "data", "v"))

	e.Submit("undo", "undoOf: {name: made}")
	e.Await("undo", "waiting", func(txn *api.Transaction) bool {
		return len(txn.Status.Items) == 2 && txn.Status.Items[0].WaitStartTime != nil
	})
	assert.Equal(t, "2", e.Value("ConfigMap/first", "data", "v"))
	e.Merge("operator", "ConfigMap/second", `{"metadata":{"labels":{"works":"1"}}}`)
	txn = e.Ended("undo")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "1", e.Value("ConfigMap/first", "data", "v"))
	assert.NotNil(t, txn.Status.Items[0].ReadyTime)
}

// A Deployment that a rollback re-creates is ready once its Pods are, which takes a controller.
func TestACompensationIsWaitedForByTheStatusOfItsTarget(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Apply(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {nodeName: nowhere, containers: [{name: web, image: "example.com/web:1"}]}
`)
	e.Submit("back", `
timeout: 8s
changes:
- {name: config, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: config}, content: {data: {a: b}}}
- name: web
  type: Delete
  dependsOn: [config]
  target: {apiVersion: apps/v1, kind: Deployment, name: web}
  rollback: {readyWhen: {status: Ready}}
`+"- {name: never, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: never}, content: {data: {a: b}}, dependsOn: [web], readyWhen: {expression: \"false\", timeout: 1s}}\n")
	began := time.Now()
	txn := e.Ended("back")
	require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.GreaterOrEqual(t, time.Since(began), 8*time.Second, "the rollback has the time of spec.timeout")
	assert.Equal(t, errclass.RollbackNotReady, txn.Status.Items[1].Reason, harness.Describe(txn))
	assert.Contains(t, txn.Status.Items[1].Message, "restored, but not ready within spec.timeout (8s): Deployment "+e.Namespace+"/web: ")
	require.NotNil(t, e.Object("apps/v1 Deployment/web"))
	assert.NotNil(t, e.Object("ConfigMap/config"), "what it depends on stays")
}

func TestARollbackThatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	const on, back = `target: {apiVersion: v1, kind: ConfigMap, name: a}`, `rollback: {readyWhen: {status: Ready}}`
	for spec, want := range map[string]string{
		`{type: Create, ` + on + `, content: {data: {a: b}}, ` + back + `}`:                                                    "rollback has no meaning for Create",
		`{type: Await, ` + on + `, readyWhen: {status: Ready}, ` + back + `}`:                                                  "rollback has no meaning for Create, whose rollback waits until the object is gone, and for Await",
		`{type: Patch, ` + on + `, content: {data: {a: b}}, rollback: {}}`:                                                     "rollback.readyWhen: Required value",
		`{type: Patch, ` + on + `, content: {data: {a: b}}, rollback: {readyWhen: {}}}`:                                        "needs either status or expression",
		`{type: Patch, ` + on + `, content: {data: {a: b}}, rollback: {readyWhen: {expression: x, timeout: 0s}}}`:              "must be a duration from 1s to 168h",
		`{type: Patch, ` + on + `, content: {data: {a: b}}, rollback: {readyWhen: {expression: x, holdFor: 3s, timeout: 2s}}}`: "holdFor must be shorter than timeout",
	} {
		require.ErrorContains(t, e.TrySubmit("refused", "changes:\n- "+spec+"\n"), want)
	}
	for text, want := range map[string]string{
		"objects.b != null": "compile rollback.readyWhen of ConfigMap a: it asks for objects.b, and may ask for object alone",
		"1 + 1":             "compile rollback.readyWhen of ConfigMap a: ",
	} {
		txn := e.Run("wrong-"+string(text[0]), `
changes:
- {name: a, type: Delete, `+on+`, rollback: {readyWhen: {expression: "`+text+`"}}}
- {name: b, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: b}, content: {data: {a: b}}}
`)
		assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
		_, reason, message := harness.Condition(txn, api.ConditionSucceeded)
		assert.Equal(t, errclass.Invalid, reason)
		assert.Contains(t, message, want)
	}
}

// What each condition was found to be is in the status, with what it said.
func TestTheResultsOfConditionsAreKept(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Apply(twoMaps)
	txn := e.Run("asked", `
changes:
- {name: wanted, type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: first}, content: {data: {v: "2"}}, when: object != null, readyWhen: {expression: object.data.v == '2'}}
- {name: unwanted, type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: second}, content: {data: {v: "2"}}, when: object == null}
- {name: unknown, type: Create, target: {apiVersion: example.com/v9, kind: Nothing, name: none}, content: {a: b}, activation: {apiVersion: example.com/v9, kind: Nothing}}
- {name: served, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: third}, content: {data: {v: "1"}}, activation: {apiVersion: v1, kind: ConfigMap}}
- {name: verdict, type: Await, target: {apiVersion: v1, kind: ConfigMap, name: second}, readyWhen: {expression: "false"}, failWhen: {expression: object.data.v == '1', messageExpression: "'v is still ' + object.data.v"}}
`)
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	found := map[string][]string{}
	for _, item := range txn.Status.Items {
		for _, r := range item.Results {
			assert.False(t, r.Time.IsZero(), "%s of %s", r.Condition, item.Name)
			found[item.Name] = append(found[item.Name], fmt.Sprintf("%s %t %s", r.Condition, r.Holds, r.Message))
		}
	}
	assert.Equal(t, map[string][]string{
		"wanted":   {"when true ", "readyWhen true "},
		"unwanted": {"when false "},
		"unknown":  {"activation false "},
		"served":   {"activation true "},
		"verdict":  {"failWhen true ConfigMap " + e.Namespace + "/second: v is still 1"},
	}, found)
}
