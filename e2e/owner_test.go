package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/fault"
	"janus.io/janus/internal/janustest"
)

// owned makes a ConfigMap that another ConfigMap owns.
func owned(e *janustest.Env) {
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}")
	uid := string(e.Object("ConfigMap/owner").GetUID())
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: " + uid + "}]}, data: {a: b}}")
}

const refusedAtCommit = `
  - target: {apiVersion: v1, kind: Service, name: a}
    type: Create
    content: {spec: {ports: [{port: 80}]}}
  - target: {apiVersion: v1, kind: Service, name: b}
    type: Create
    content: {spec: {ports: [{port: 80}]}}
`

const oneService = `{apiVersion: v1, kind: ResourceQuota, metadata: {name: one}, spec: {hard: {count/services: "1"}}}`

func TestADeletedObjectWhoseOwnerIsThereIsRecreated(t *testing.T) {
	e := janustest.New(t)
	owned(e)
	e.ApplyQuota(oneService)
	e.Start()
	before := e.Object("ConfigMap/owned")

	txn := e.Run("delete-owned", `
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: owned}
    type: Delete
`+refusedAtCommit)

	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, janustest.Describe(txn))
	e.Same(before, "ConfigMap/owned")
	e.NothingLeft("delete-owned")
}

// The owner comes back under a new uid, so the object would be collected as soon as
// it exists: RolledBack would be a lie.
func TestADeletedObjectWhoseOwnerWasRecreatedIsReportedAndNotMade(t *testing.T) {
	e := janustest.New(t)
	owned(e)
	e.ApplyQuota(oneService)
	e.Start()
	owner := e.Object("ConfigMap/owner")

	txn := e.Run("delete-both", `
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: owned}
    type: Delete
  - target: {apiVersion: v1, kind: ConfigMap, name: owner}
    type: Delete
`+refusedAtCommit)

	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, janustest.Describe(txn))
	_, reason, message := janustest.Condition(txn, api.ConditionReady)
	assert.Equal(t, "RollbackIncomplete", reason)
	assert.Contains(t, message, "its owner ConfigMap owner")
	assert.Equal(t, fault.OwnerGone, txn.Status.Items[0].Reason)
	assert.Equal(t, api.ItemUnresolved, txn.Status.Items[0].State)
	e.Same(owner, "ConfigMap/owner")
	assert.Nil(t, e.Object("ConfigMap/owned"))
	e.NothingLeft("delete-both")
}
