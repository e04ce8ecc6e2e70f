package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// What Continue has left in effect is not made again, and others may refer to it.
func TestARetryMakesOnlyWhatIsNotInEffect(t *testing.T) {
	e := harness.New(t)
	e.Start()
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: taken}}")
	first := e.Run("first", `
serviceAccountName: deployer
onFailure: Continue
changes:
- {name: made, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: made}, content: {data: {version: "1"}}}
- {name: taken, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: taken}, content: {data: {version: "1"}}}
- {name: after, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: after}, when: 'objects.made.data.version == "1" && objects.taken != null', content: {data: {version: "1"}}}
`)
	require.Equal(t, api.PhaseFailed, first.Status.Phase, harness.Describe(first))
	require.Equal(t, api.ItemCommitted, first.Status.Items[0].State, harness.Describe(first))
	before := e.Object("ConfigMap/made")
	e.Run("clear", `
serviceAccountName: deployer
changes:
- {type: Delete, target: {apiVersion: v1, kind: ConfigMap, name: taken}}
`)

	out, err := runs(t, e, nil, "retry", "first", "--name", "again", "--wait", "--timeout", "2m")
	require.NoError(t, err, out)
	again := e.Transaction("again")
	assert.Equal(t, api.PhaseCommitted, again.Status.Phase, harness.Describe(again))
	assert.Equal(t, before.GetResourceVersion(), e.Object("ConfigMap/made").GetResourceVersion(), "it was written again")
	assert.NotNil(t, e.Object("ConfigMap/after"))
}

// An undo has items, and its changes follow from what it undoes.
func TestAnUndoIsRetriedAsItIs(t *testing.T) {
	undo := &api.Transaction{}
	undo.Spec.UndoOf = &api.UndoOf{Name: "first"}
	undo.Status.Items = []api.Item{{Name: "0", State: api.ItemCommitted}, {Name: "1", State: api.ItemRejected}}
	leaveOut(undo)
	assert.Empty(t, undo.Spec.Changes)
	assert.Equal(t, "first", undo.Spec.UndoOf.Name)
}
