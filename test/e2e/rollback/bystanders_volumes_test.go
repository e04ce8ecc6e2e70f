package rollback

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// volumeOf makes a volume of a directory with a file in it, in a storage class that has
// the name of the volume.
func volumeOf(t *testing.T, e *harness.Env, name, policy, more string) (file string) {
	t.Helper()
	// The control plane deletes below /tmp alone.
	dir, err := os.MkdirTemp("/tmp", "janus-volume-")
	require.NoError(t, err)
	file = filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	e.Apply(fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: %[2]s, storageClassName: %[1]s, hostPath: {path: %[3]s}%[4]s}
`, name, policy, dir, more))
	t.Cleanup(func() {
		ctx := context.Background()
		volumes := e.Kube.CoreV1().PersistentVolumes()
		_ = volumes.Delete(ctx, name, metav1.DeleteOptions{})
		_, _ = volumes.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		_ = os.RemoveAll(dir)
	})
	e.Until("the volume is available", func() bool { return e.Value("PersistentVolume/"+name, "status", "phase") == "Available" })
	return file
}

// boundVolume makes such a volume with the name of the namespace, which is deleted once it is released, and claim
// "data", which has bound it.
func boundVolume(t *testing.T, e *harness.Env) (file string) {
	t.Helper()
	file = volumeOf(t, e, e.Namespace, "Delete", "")
	e.Apply("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: " + e.Namespace + ", resources: {requests: {storage: 1Gi}}}}")
	e.Until("the volume is bound", func() bool { return e.Value("PersistentVolume/"+e.Namespace, "status", "phase") == "Bound" })
	return file
}

// releaseVolume deletes the claim, as another client would.
func releaseVolume(t *testing.T, e *harness.Env) {
	t.Helper()
	require.NoError(t, e.Kube.CoreV1().PersistentVolumeClaims(e.Namespace).Delete(t.Context(), "data", metav1.DeleteOptions{}))
	e.Until("the volume is released", func() bool { return e.Value("PersistentVolume/"+e.Namespace, "status", "phase") == "Released" })
}

const claimAndGate = `
changes:
  - name: claim
    type: Create
    target: {apiVersion: v1, kind: PersistentVolumeClaim, name: data}
    content: {spec: {accessModes: [ReadWriteOnce], storageClassName: CLASS, resources: {requests: {storage: 1Gi}}}}
    readyWhen: {expression: "object.status.phase == 'Bound'", timeout: 60s}
` + gate

// gate is a last change that never becomes ready.
const gate = `
  - name: gate
    type: Create
    target: {apiVersion: v1, kind: ConfigMap, name: gate}
    content: {data: {a: b}}
    readyWhen: {expression: "has(object.data.go)", timeout: 150s}
`

// cancelAtGate has a Transaction rolled back once its last change waits.
func cancelAtGate(e *harness.Env, name string) *api.Transaction {
	e.Until("all changes are made", func() bool { return e.Object("ConfigMap/gate") != nil })
	e.Merge("person", harness.TransactionRef+name, `{"spec":{"cancel":"Rollback"}}`)
	return e.Await(name, "it ends, and is not taken up again", func(t *api.Transaction) bool {
		retried := slices.ContainsFunc(t.Status.Items, func(i api.Item) bool { return i.Reason == errclass.AccessDenied || i.Reason == errclass.NotEmpty })
		return t.Status.CompletionTime != nil && (!retried || t.Status.Recoveries >= harness.FastPolicy.Recoveries)
	})
}

// A claim takes its volume: one that was there before is neither destroyed nor lost to
// the next claim.
func TestARollbackOfAClaimSparesTheVolumeThatWasThereBefore(t *testing.T) {
	t.Parallel()
	const withVolumes, without = true, false
	for _, row := range []struct {
		name, policy, more string
		volumes            bool // rights on volumes
		phase              api.Phase
		reason             string
		says               []string
		claimRef           string // of the volume afterwards
	}{
		{name: "a volume that would be destroyed keeps its claim", policy: "Delete", volumes: withVolumes,
			phase: api.PhaseFailed, reason: errclass.Irreversible, says: []string{"reclaim policy is Delete", "kubectl patch pv"}},
		{name: "a retained volume can be bound again", policy: "Retain", volumes: withVolumes, phase: api.PhaseRolledBack, claimRef: "<absent>"},
		{name: "a volume that was reserved for the claim is so again", policy: "Retain", volumes: withVolumes,
			more: ", claimRef: {namespace: $NS, name: data}", phase: api.PhaseRolledBack, claimRef: "data"},
		{name: "without rights on volumes the claim is kept", policy: "Delete", volumes: without,
			phase: api.PhaseFailed, reason: errclass.AccessDenied, says: []string{"may not get persistentvolumes"}},
		{name: "a retained volume that may not be given back keeps its claim", policy: "Retain", volumes: without,
			phase: api.PhaseFailed, reason: errclass.AccessDenied, says: []string{"grant the ServiceAccount get, list and patch on persistentvolumes"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			if row.volumes {
				e.ClusterWide()
			}
			name := e.Namespace
			file := volumeOf(t, e, name, row.policy, strings.ReplaceAll(row.more, "$NS", e.Namespace))
			uid := e.Object("PersistentVolume/" + name).GetUID()
			e.Start()
			spec := strings.ReplaceAll(claimAndGate, "CLASS", name)
			e.Submit("claim", spec)
			txn := cancelAtGate(e, "claim")

			assert.Equal(t, row.phase, txn.Status.Phase, harness.Describe(txn))
			item := txn.Status.Items[0]
			if row.reason != "" {
				assert.Equal(t, row.reason, item.Reason, harness.Describe(txn))
				assert.Contains(t, item.Message, name, "it names the volume")
				assert.NotNil(t, e.Object("PersistentVolumeClaim/data"))
			}
			for _, part := range row.says {
				assert.Contains(t, item.Message, part)
			}
			volume := e.Object("PersistentVolume/" + name)
			require.NotNil(t, volume)
			assert.Equal(t, uid, volume.GetUID())
			assert.Nil(t, volume.GetDeletionTimestamp())
			text, err := os.ReadFile(file)
			require.NoError(t, err, "its data is there")
			assert.Equal(t, "precious", string(text))
			e.NothingLeft("claim")
			if row.phase != api.PhaseRolledBack {
				return
			}
			e.Until("the volume is available again", func() bool { return e.Value("PersistentVolume/"+name, "status", "phase") == "Available" })
			assert.Equal(t, row.claimRef, e.Value("PersistentVolume/"+name, "spec", "claimRef", "name"))
			e.Apply("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: " + name + ", resources: {requests: {storage: 1Gi}}}}")
			e.Until("the next claim binds it", func() bool { return e.Value("PersistentVolumeClaim/data", "status", "phase") == "Bound" })
		})
	}
}

// An undo of what has committed looks at the same.
func TestAnUndoOfAClaimSparesTheVolumeThatWasThereBefore(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	file := volumeOf(t, e, e.Namespace, "Delete", "")
	e.Start()
	spec := strings.TrimSuffix(strings.ReplaceAll(claimAndGate, "CLASS", e.Namespace), gate)
	txn := e.Run("release", "revisionHistoryLimit: 10"+spec)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	undo := e.Run("undo", "{undoOf: {name: release}}")
	assert.Equal(t, api.PhaseFailed, undo.Status.Phase)
	assert.Contains(t, harness.Describe(undo), e.Namespace+" is Delete")
	assert.FileExists(t, file)

	e.Merge("person", "PersistentVolume/"+e.Namespace, `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)
	undo = e.Run("again", "{undoOf: {name: release}}")
	assert.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
	assert.Contains(t, undo.Status.Items[0].Warnings[0], "kubectl patch pv "+e.Namespace)
	assert.FileExists(t, file)
}

// An undo of a deletion creates the claim again, and lets it have its volume; also if a process has
// freed that, and ended before it created the claim.
func TestAnUndoBindsADeletedClaimToItsVolumeAgain(t *testing.T) {
	t.Parallel()
	for name, freed := range map[string]bool{"it is released": false, "it is freed already": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			undoOfAClaim(t, freed)
		})
	}
}

func undoOfAClaim(t *testing.T, freed bool) {
	t.Helper()
	e := harness.New(t)
	e.ClusterWide()
	file := volumeOf(t, e, e.Namespace, "Retain", "")
	e.Apply("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: " + e.Namespace + ", resources: {requests: {storage: 1Gi}}}}")
	bound := func() bool { return e.Value("PersistentVolumeClaim/data", "status", "phase") == "Bound" }
	e.Until("it is bound", bound)
	e.Start()
	txn := e.Run("drop", "{revisionHistoryLimit: 10, changes: [{type: Delete, target: {apiVersion: v1, kind: PersistentVolumeClaim, name: data}}]}")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	e.Until("the volume is released", func() bool { return e.Value("PersistentVolume/"+e.Namespace, "status", "phase") == "Released" })
	if freed {
		e.Merge("person", "PersistentVolume/"+e.Namespace, `{"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`)
	}

	undo := e.Run("undo", "{undoOf: {name: drop}}")
	assert.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
	e.Until("it is bound again", bound)
	assert.Equal(t, e.Namespace, e.Value("PersistentVolumeClaim/data", "spec", "volumeName"))
	assert.FileExists(t, file)
}

// One whose volume has another claim by now is not created: it would wait for ever.
func TestAnUndoRefusesADeletedClaimWhoseVolumeHasAnother(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	volumeOf(t, e, e.Namespace, "Retain", "")
	claim := "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: NAME}, spec: {accessModes: [ReadWriteOnce], storageClassName: " + e.Namespace + ", resources: {requests: {storage: 1Gi}}}}"
	e.Apply(strings.ReplaceAll(claim, "NAME", "data"))
	e.Until("it is bound", func() bool { return e.Value("PersistentVolumeClaim/data", "status", "phase") == "Bound" })
	e.Start()
	txn := e.Run("drop", "{revisionHistoryLimit: 10, changes: [{type: Delete, target: {apiVersion: v1, kind: PersistentVolumeClaim, name: data}}]}")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	e.Until("the volume is released", func() bool { return e.Value("PersistentVolume/"+e.Namespace, "status", "phase") == "Released" })
	e.Merge("person", "PersistentVolume/"+e.Namespace, `{"spec":{"claimRef":null}}`)
	e.Apply(strings.ReplaceAll(claim, "NAME", "theirs"))
	e.Until("theirs is bound", func() bool { return e.Value("PersistentVolumeClaim/theirs", "status", "phase") == "Bound" })

	undo := e.Run("undo", "{undoOf: {name: drop}}")
	assert.Equal(t, api.PhaseFailed, undo.Status.Phase, harness.Describe(undo))
	assert.Equal(t, errclass.Irreversible, undo.Status.Items[0].Reason)
	assert.Contains(t, harness.Describe(undo), "its volume "+e.Namespace+" belongs to claim "+e.Namespace+"/theirs")
	assert.Nil(t, e.Object("PersistentVolumeClaim/data"))
}

// A volume that a change has made and the claim of another client has bound is in use.
func TestAVolumeThatOthersHaveClaimedIsKeptInRollback(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	name := e.Namespace
	e.Start()
	t.Cleanup(func() {
		ctx := context.Background()
		_ = e.Kube.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{})
		_, _ = e.Kube.CoreV1().PersistentVolumes().Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	e.Submit("volume", strings.ReplaceAll(`
changes:
  - type: Create
    target: {apiVersion: v1, kind: PersistentVolume, name: NAME}
    content: {spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Retain, storageClassName: NAME, hostPath: {path: /nowhere}}}
`, "NAME", name)+gate)
	e.Apply("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: theirs}, spec: {accessModes: [ReadWriteOnce], storageClassName: " + name + ", resources: {requests: {storage: 1Gi}}}}")
	e.Until("it is bound", func() bool { return e.Value("PersistentVolumeClaim/theirs", "status", "phase") == "Bound" })
	txn := cancelAtGate(e, "volume")
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.NotEmpty, txn.Status.Items[0].Reason)
	assert.Contains(t, txn.Status.Items[0].Message, "PersistentVolumeClaim "+e.Namespace+"/theirs")
	assert.Nil(t, e.Object("PersistentVolume/"+name).GetDeletionTimestamp())
	e.NothingLeft("volume")
}
