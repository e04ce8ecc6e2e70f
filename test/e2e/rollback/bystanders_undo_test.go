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
	file := boundVolume(t, e)
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

// slowly has an undo wait before it goes on with the first of two changes: the other is undone before, and
// waited for until a person says so.
func slowly(t *testing.T, e *harness.Env, change string) (goOn func() *api.Transaction) {
	t.Helper()
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: other}, data: {a: old}}")
	e.Start()
	committed(t, e, "slow", change+`,
{type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: other}, content: {data: {a: new}}, rollback: {readyWhen: {expression: "has(object.data.go)", timeout: 60s}}}`)
	e.Submit("undo", "{undoOf: {name: slow}}")
	e.Until("the other is undone", func() bool { return e.Value("ConfigMap/other", "data", "a") == "old" })
	return func() *api.Transaction {
		e.Merge("person", "ConfigMap/other", `{"data":{"go":"x"}}`)
		return e.Ended("undo")
	}
}

// What an old value would do is asked again when its turn comes.
func TestAnUndoSparesAVolumeWhoseClaimGoesMeanwhile(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	file := boundVolume(t, e)
	goOn := slowly(t, e, "{type: Patch, target: {apiVersion: v1, kind: PersistentVolume, name: "+e.Namespace+"}, content: {spec: {persistentVolumeReclaimPolicy: Retain}}}")
	releaseVolume(t, e)
	txn := goOn()
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Contains(t, harness.Describe(txn), "has been deleted since")
	assert.FileExists(t, file)
}

func TestAnUndoSparesAnObjectWhoseOwnerGoesMeanwhile(t *testing.T) {
	t.Parallel()
	e := withOwner(t, "first")
	goOn := slowly(t, e, "{type: Update, target: {apiVersion: v1, kind: ConfigMap, name: owned}, content: {data: {a: new}}}")
	require.NoError(t, e.Kube.CoreV1().ConfigMaps(e.Namespace).Delete(t.Context(), "first", metav1.DeleteOptions{}))
	txn := goOn()
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Contains(t, harness.Describe(txn), errclass.OwnerGone)
	assert.Empty(t, e.Object("ConfigMap/owned").GetOwnerReferences())
}

// The undo creates the claim first, so that its volume isn't released when it is no longer retained.
func TestAnUndoBindsAVolumeBeforeItIsNotRetained(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	name := e.Namespace
	file := boundVolume(t, e)
	// What was prepared before the control plane has bound the volume is made after that.
	e.Start(harness.Acting(harness.Around{Do: func(txn string, item int) {
		if txn == "undo" && item == 1 {
			e.Until("the volume is bound", func() bool { return e.Value("PersistentVolume/"+name, "status", "phase") == "Bound" })
			e.Merge("person", "PersistentVolume/"+name, `{"metadata":{"labels":{"seen":"yes"}}}`)
		}
	}}))
	committed(t, e, "retain", `
{type: Patch, target: {apiVersion: v1, kind: PersistentVolume, name: `+name+`}, content: {spec: {persistentVolumeReclaimPolicy: Retain}}},
{type: Delete, target: {apiVersion: v1, kind: PersistentVolumeClaim, name: data}, acceptLoss: true}`)
	e.Until("the volume is released", func() bool { return e.Value("PersistentVolume/"+name, "status", "phase") == "Released" })
	txn := e.Run("undo", "{undoOf: {name: retain}}")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "Delete", e.Value("PersistentVolume/"+name, "spec", "persistentVolumeReclaimPolicy"))
	assert.Equal(t, "yes", e.Value("PersistentVolume/"+name, "metadata", "labels", "seen"))
	e.Until("the claim is bound", func() bool { return e.Value("PersistentVolumeClaim/data", "status", "phase") == "Bound" })
	assert.FileExists(t, file)
}

// The token of a Secret is that of a ServiceAccount that is gone, though the undo creates one of its name.
func TestAnUndoOfATokenSecretAndItsServiceAccountIsRefused(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}}")
	e.Apply("{apiVersion: v1, kind: Secret, metadata: {name: robot-token, annotations: {kubernetes.io/service-account.name: robot}}, type: kubernetes.io/service-account-token}")
	e.Until("it has a token", func() bool { return e.Value("Secret/robot-token", "data", "token") != "<absent>" })
	e.Start()
	committed(t, e, "robot", `
{type: Delete, target: {apiVersion: v1, kind: Secret, name: robot-token}, acceptLoss: true},
{type: Delete, target: {apiVersion: v1, kind: ServiceAccount, name: robot}, acceptLoss: true}`)
	txn := e.Run("undo", "{undoOf: {name: robot}}")
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Contains(t, harness.Describe(txn), "nothing was changed")
	assert.Contains(t, harness.Describe(txn), errclass.OwnerGone)
}
