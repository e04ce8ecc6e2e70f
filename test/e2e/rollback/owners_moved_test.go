package rollback

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// withOwner makes an object that others own.
func withOwner(t *testing.T, owners ...string) *harness.Env {
	t.Helper()
	e := harness.New(t)
	references := ""
	for _, owner := range owners {
		e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + owner + "}}")
		references += "{apiVersion: v1, kind: ConfigMap, name: " + owner + ", uid: " + string(e.Object("ConfigMap/"+owner).GetUID()) + "},"
	}
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, ownerReferences: [" + references + "]}, data: {a: old}}")
	return e
}

// ownedBy checks that an object has just these owners, as they are now.
func ownedBy(t *testing.T, e *harness.Env, owners ...string) {
	t.Helper()
	found := e.Object("ConfigMap/owned").GetOwnerReferences()
	require.Len(t, found, len(owners))
	for n, owner := range owners {
		assert.Equal(t, owner, found[n].Name)
		assert.Equal(t, e.Object("ConfigMap/"+owner).GetUID(), found[n].UID)
	}
	assert.Equal(t, "old", e.Value("ConfigMap/owned", "data", "a"))
}

// released are changes that take the owners off an object before the first of them is deleted.
const released = `
changes:
  - name: release
    type: Update
    target: {apiVersion: v1, kind: ConfigMap, name: owned}
    content: {data: {a: new}}
  - type: Delete
    target: {apiVersion: v1, kind: ConfigMap, name: first}
    dependsOn: [release]
`

// given are such changes that give the object another owner.
func given(e *harness.Env) string {
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: third}}")
	reference := "[{apiVersion: v1, kind: ConfigMap, name: third, uid: " + string(e.Object("ConfigMap/third").GetUID()) + "}]"
	return strings.Replace(released, "{data: {a: new}}", "{metadata: {ownerReferences: "+reference+"}, data: {a: new}}", 1)
}

var releases = map[string]struct {
	owners  []string
	changes func(e *harness.Env) string
}{
	"its only owner": {[]string{"first"}, func(*harness.Env) string { return released }},
	"one of two":     {[]string{"first", "second"}, func(*harness.Env) string { return released }},
	"of a graph":     {[]string{"first"}, func(*harness.Env) string { return "order: Graph\n" + released }},
	"for another":    {[]string{"first"}, given},
}

// A change takes the owners off an object before one of them is deleted: the rollback gives it that
// one back as it is then.
func TestARollbackGivesAnObjectTheOwnerThatItHasCreatedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range releases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := withOwner(t, c.owners...)
			e.Start()
			txn := e.Run("released", c.changes(e)+`
  - type: Create
    target: {apiVersion: v1, kind: ConfigMap, name: never}
    content: {data: {a: b}}
    dependsOn: [release]
    readyWhen: {expression: "has(object.data.go)", timeout: 1s}
`)
			assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			assert.Contains(t, txn.Status.Items[0].Message, "its owner ConfigMap first has uid "+string(e.Object("ConfigMap/first").GetUID())+" now")
			ownedBy(t, e, c.owners...)
			e.NothingLeft("released")
		})
	}
}

func TestAnUndoGivesAnObjectTheOwnerThatItHasCreatedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range releases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := withOwner(t, c.owners...)
			e.Start()
			txn := e.Run("released", "revisionHistoryLimit: 10\n"+c.changes(e))
			require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			txn = e.Run("undo", "{undoOf: {name: released}}")
			assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			ownedBy(t, e, c.owners...)
		})
	}
}

// Both are deleted, the object before its owner, and an undo creates them again.
func TestAnUndoOfDeletionsGivesAnObjectItsOwnerAgain(t *testing.T) {
	t.Parallel()
	e := withOwner(t, "first")
	e.Start()
	committed(t, e, "deleted", `
{type: Delete, target: {apiVersion: v1, kind: ConfigMap, name: owned}},
{type: Delete, target: {apiVersion: v1, kind: ConfigMap, name: first}}`)
	txn := e.Run("undo", "{undoOf: {name: deleted}}")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	ownedBy(t, e, "first")
}
