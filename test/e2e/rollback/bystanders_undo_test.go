package rollback

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// committed makes changes that are remembered.
func committed(t *testing.T, e *harness.Env, name, changes string) {
	t.Helper()
	txn := e.Run(name, "{revisionHistoryLimit: 10, changes: ["+changes+"]}")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
}

// undoneOnlyWithLoss has an undo refused, because of what it would destroy, and returns the message.
func undoneOnlyWithLoss(t *testing.T, e *harness.Env, name string) string {
	t.Helper()
	txn := e.Run("refused", "{undoOf: {name: "+name+"}}")
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	require.NotEmpty(t, txn.Status.Items)
	assert.Equal(t, errclass.Irreversible, txn.Status.Items[0].Reason, harness.Describe(txn))
	assert.Contains(t, txn.Status.Items[0].Message, "undoOf.acceptLoss")
	e.NothingLeft("refused")
	return txn.Status.Items[0].Message
}

// The garbage collector would delete an object that gets a reference to an owner that is gone.
func TestAnUndoLeavesOutAReferenceToAnOwnerThatIsGone(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: gone}}")
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: again}}")
	reference := func(owner string) string {
		return "{apiVersion: v1, kind: ConfigMap, name: " + owner + ", uid: " + string(e.Object("ConfigMap/"+owner).GetUID()) + "}"
	}
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: orphan, ownerReferences: [" + reference("gone") + "]}, data: {a: old}}")
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, ownerReferences: [" + reference("again") + "]}, data: {a: old}}")
	e.Start()
	committed(t, e, "data", `
{type: Update, target: {apiVersion: v1, kind: ConfigMap, name: orphan}, content: {data: {a: new}}},
{type: Update, target: {apiVersion: v1, kind: ConfigMap, name: owned}, content: {data: {a: new}}}`)
	for _, owner := range []string{"gone", "again"} {
		require.NoError(t, e.Kube.CoreV1().ConfigMaps(e.Namespace).Delete(t.Context(), owner, metav1.DeleteOptions{}))
	}
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: again}}")

	txn := e.Run("undo", "{undoOf: {name: data}}")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "old", e.Value("ConfigMap/orphan", "data", "a"))
	assert.Empty(t, e.Object("ConfigMap/orphan").GetOwnerReferences())
	var warnings []string
	for _, item := range txn.Status.Items {
		warnings = append(warnings, item.Warnings...)
	}
	assert.Contains(t, strings.Join(warnings, "\n"), "the reference to its owner ConfigMap gone is left out, because that is gone")
	assert.Equal(t, "old", e.Value("ConfigMap/owned", "data", "a"))
	owners := e.Object("ConfigMap/owned").GetOwnerReferences()
	require.Len(t, owners, 1)
	assert.Equal(t, e.Object("ConfigMap/again").GetUID(), owners[0].UID)
}

func TestAnUndoSparesAVolumeWhoseClaimIsGone(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	name := e.Namespace
	file := boundVolume(t, e, "Delete")
	e.Start()
	committed(t, e, "retain", "{type: Patch, target: {apiVersion: v1, kind: PersistentVolume, name: "+name+"}, content: {spec: {persistentVolumeReclaimPolicy: Retain}}}")
	releaseVolume(t, e)

	assert.Contains(t, undoneOnlyWithLoss(t, e, "retain"), "PersistentVolumeClaim "+name+"/data")
	assert.FileExists(t, file)
	txn := e.Run("undo", "{undoOf: {name: retain, acceptLoss: true}}")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	e.Until("the volume is gone", func() bool { return e.Object("PersistentVolume/"+name) == nil })
}

// After the commit the data of the claims that a scale-up has made may be needed.
func TestAnUndoOfAScaleUpSparesItsClaims(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(withClaims)
	e.Start()
	committed(t, e, "set", "{type: Patch, target: {apiVersion: apps/v1, kind: StatefulSet, name: x}, content: {spec: {replicas: 2}}}")
	scaledUpTo(e, "data-x-1")

	assert.Contains(t, undoneOnlyWithLoss(t, e, "set"), "data-x-1")
	assert.Nil(t, e.Object("PersistentVolumeClaim/data-x-1").GetDeletionTimestamp())
	txn := e.Run("undo", "{undoOf: {name: set, acceptLoss: true}}")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	e.Until("the claim is gone", func() bool { return e.Object("PersistentVolumeClaim/data-x-1") == nil })
}

func TestAnUndoSparesEndpointsMadeWhileTheServiceSelectsNothing(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply("{apiVersion: v1, kind: Service, metadata: {name: database}, spec: {selector: {app: x}, ports: [{port: 5432}]}}")
	e.Until("the control plane has made Endpoints", func() bool { return e.Object("Endpoints/database") != nil })
	e.Start()
	committed(t, e, "service", "{type: Update, target: {apiVersion: v1, kind: Service, name: database}, content: {spec: {ports: [{port: 5432}]}}}")
	e.Apply(endpoints)

	assert.Contains(t, undoneOnlyWithLoss(t, e, "service"), "Endpoints "+e.Namespace+"/database")
	assert.Equal(t, "<absent>", e.Value("Service/database", "spec", "selector", "app"))
	txn := e.Run("undo", "{undoOf: {name: service, acceptLoss: true}}")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "x", e.Value("Service/database", "spec", "selector", "app"))
}
