package content

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

func TestAChangeThatIsNotActivatedNeedsNoSource(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	txn := e.Run("release", `
changes:
  - name: optional
    activation: {apiVersion: nowhere.example.com/v1, kind: Thing}
    target: {apiVersion: v1, kind: ConfigMap, name: optional}
    type: Create
    contentFrom: {configMapKeyRef: {name: missing, key: key}}
  - name: after
    dependsOn: [optional]
    target: {apiVersion: nowhere.example.com/v1, kind: Thing, name: thing}
    type: Create
    contentFrom: {secretKeyRef: {name: missing, key: key}}
  - {name: made, target: {apiVersion: v1, kind: ConfigMap, name: made}, type: Create, content: {data: {a: b}}}
`)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	for i, reason := range []string{plan.ReasonNotActivated, "DependencySkipped", ""} {
		assert.Equal(t, reason, txn.Status.Items[i].Reason, harness.Describe(txn))
		assert.Empty(t, txn.Status.Items[i].ContentDigest, harness.Describe(txn))
	}
	assert.True(t, txn.Status.Items[1].Confidential)
	assert.Equal(t, "b", e.Value("ConfigMap/made", "data", "a"))
	e.ClearedUp("release")
}

// To whom the fields of a target go follows from what was set on it. A janusd that has read no
// source reads those of the changes that were made.
func TestFieldsAreHandedOverWithoutTheSourceOfASkippedChange(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: source}
data: {key: "data: {c: d}"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: there}
data: {kept: "yes"}
`)
	first := e.Start()
	e.Submit("release", `
fieldManager: tool
changes:
  - {name: skipped, when: object == null, target: {apiVersion: v1, kind: ConfigMap, name: there}, type: Patch, contentFrom: {configMapKeyRef: {name: source, key: key}}}
  - name: made
    target: {apiVersion: v1, kind: ConfigMap, name: there}
    type: Patch
    content: {data: {a: b}}
    readyWhen: {expression: has(object.data.ready)}
  - {name: last, target: {apiVersion: v1, kind: ConfigMap, name: source}, type: Delete}
`)
	e.Await("release", "waiting for the target", func(t *api.Transaction) bool {
		return len(t.Status.Items) > 1 && t.Status.Items[1].WaitStartTime != nil
	})
	first.Stop()
	e.Start()
	e.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: there}\ndata: {kept: \"yes\", ready: \"yes\"}\n")
	txn := e.Ended("release")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, plan.ReasonWhenFalse, txn.Status.Items[0].Reason)
	assert.NotEmpty(t, txn.Status.Items[0].ContentDigest, "its source was read when it was accepted")
	assert.Empty(t, txn.Status.Items[1].Message, harness.Describe(txn))
	assert.Nil(t, e.Object("ConfigMap/source"))
	e.ClearedUp("release")
}

// What is pinned is what the source held before the first change: a content that the Transaction
// itself would change, or make, is never the one that is wanted.
func TestASourceThatIsChangedFirstIsRefused(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: source}\ndata: {key: \"data: {a: b}\"}\n")
	e.Start()
	const uses = `
  - {name: uses, target: {apiVersion: v1, kind: ConfigMap, name: made}, type: Create, contentFrom: {configMapKeyRef: {name: %s, key: key}}}`
	const changes = `
  - {name: changes, target: {apiVersion: v1, kind: ConfigMap, name: %s}, type: %s, content: {data: {key: "data: {a: other}"}}}`
	for name, spec := range map[string]string{
		"patched": "changes:" + fmt.Sprintf(changes, "source", "Patch") + fmt.Sprintf(uses, "source"),
		"created": "changes:" + fmt.Sprintf(changes, "none", "Create") + fmt.Sprintf(uses, "none"),
		"beside":  "order: Graph\nchanges:" + fmt.Sprintf(uses, "source") + fmt.Sprintf(changes, "source", "Patch"),
	} {
		txn := e.Run(name, spec)
		require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
		item := txn.Status.Items[slices.IndexFunc(txn.Status.Items, func(i api.Item) bool { return i.Name == "uses" })]
		assert.Equal(t, errclass.Invalid, item.Reason, name)
		assert.Contains(t, item.Message, "is the target of item changes, and contents are read before the first change; change the source in another Transaction", name)
		e.NothingLeft(name)
	}
	assert.Nil(t, e.Object("ConfigMap/none"))
	txn := e.Run("after", "changes:"+fmt.Sprintf(uses, "source")+fmt.Sprintf(changes, "source", "Patch"))
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "b", e.Value("ConfigMap/made", "data", "a"))
}
