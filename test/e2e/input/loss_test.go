package input

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

const suspendedJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: a, image: example.com/a}]}}
`

const deleteJob = `
changes:
  - target: {apiVersion: batch/v1, kind: Job, name: j}
    type: Delete
`

func TestADeletionThatLosesSomethingIsRefusedBeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(suspendedJob)
	before := e.Object("batch/v1 Job/j")
	e.Start()
	txn := e.Run("delete-job", deleteJob)
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	_, reason, message := harness.Condition(txn, api.ConditionReady)
	assert.Equal(t, errclass.Irreversible, reason)
	assert.Contains(t, message, "acceptLoss: true")
	e.Same(before, "batch/v1 Job/j")
	e.NothingLeft("delete-job")
}

func TestALossThatWasAcceptedIsSaidBeforeAndAfter(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(suspendedJob)
	before := e.Object("batch/v1 Job/j")
	e.Refuse()
	e.Start()
	txn := e.Run("delete-job", deleteJob+"    acceptLoss: true\n"+fixture.RefusedAtCommit)
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	item := txn.Status.Items[0]
	require.NotEmpty(t, item.Warnings)
	assert.Contains(t, item.Warnings[0], "would run again")
	assert.Contains(t, item.Message, "it runs again from the start")
	assert.NotEqual(t, before.GetUID(), e.Object("batch/v1 Job/j").GetUID())
	e.NothingLeft("delete-job")
}

// Whether an owner that may not be read is there cannot be told: the reference stays.
func TestAnOwnerThatTheServiceAccountMayNotReadIsTakenToBeThere(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	rights := strings.Replace(fixture.LimitedTo("get, create, patch, delete"), "resources: [configmaps]", "resources: [configmaps, services]", 1)
	e.Apply(strings.TrimPrefix(strings.ReplaceAll(rights, "$NS", e.Namespace), "\n---"))
	e.Apply("{apiVersion: v1, kind: Secret, metadata: {name: owner}}")
	uid := string(e.Object("Secret/owner").GetUID())
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, ownerReferences: [{apiVersion: v1, kind: Secret, name: owner, uid: " + uid + "}]}}")
	before := e.Object("ConfigMap/owned")
	e.Refuse()
	e.Start()
	txn := e.Run("delete-owned", `
serviceAccountName: limited
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: owned}
    type: Delete
`+fixture.RefusedAtCommit)
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(before, "ConfigMap/owned")
	assert.Empty(t, txn.Status.Items[0].Message)
	e.NothingLeft("delete-owned")
}
