package rollback

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

const (
	snapshotRef = "snapshot.storage.k8s.io/v1 VolumeSnapshot/"
	contentRef  = "snapshot.storage.k8s.io/v1 VolumeSnapshotContent/"
	bound       = "test/bound"
)

// outsideKinds installs the kinds that stand for something outside. They stay: other tests of the
// package use them too.
func outsideKinds(t *testing.T, e *harness.Env) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root(), "testdata", "crds", "outside.yaml"))
	require.NoError(t, err)
	e.Apply(string(text))
	e.Served("snapshot.storage.k8s.io/v1 VolumeSnapshot")
	e.Served("snapshot.storage.k8s.io/v1 VolumeSnapshotContent")
}

// snapshotController does in the namespace of a test what the controller of that name does: it
// makes a content for a VolumeSnapshot of a claim, and deletes that with it.
func snapshotController(t *testing.T, e *harness.Env) {
	t.Helper()
	group := schema.GroupVersion{Group: "snapshot.storage.k8s.io", Version: "v1"}
	snapshots, err := e.For(group.WithKind("VolumeSnapshot"), e.Namespace)
	require.NoError(t, err)
	contents, err := e.For(group.WithKind("VolumeSnapshotContent"), "")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if list, err := snapshots.List(ctx, metav1.ListOptions{}); err == nil {
				for i := range list.Items {
					syncSnapshot(ctx, snapshots, contents, &list.Items[i])
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		ctx := context.Background()
		if list, err := contents.List(ctx, metav1.ListOptions{LabelSelector: "of=" + e.Namespace}); err == nil {
			for _, content := range list.Items {
				_ = contents.Delete(ctx, content.GetName(), metav1.DeleteOptions{})
			}
		}
	})
}

// syncSnapshot passes over an error: it comes back soon.
func syncSnapshot(ctx context.Context, snapshots, contents dynamic.ResourceInterface, snapshot *unstructured.Unstructured) {
	name := contentOf(snapshot)
	finalizers := `["` + bound + `"]`
	switch claim, _, _ := unstructured.NestedString(snapshot.Object, "spec", "source", "persistentVolumeClaimName"); {
	case snapshot.GetDeletionTimestamp() != nil:
		_ = contents.Delete(ctx, name, metav1.DeleteOptions{})
		finalizers = "null"
	case claim != "":
		_, _ = contents.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": snapshot.GetAPIVersion(), "kind": "VolumeSnapshotContent",
			"metadata": map[string]any{"name": name, "labels": map[string]any{"of": snapshot.GetNamespace()}},
			"spec":     map[string]any{"deletionPolicy": "Delete", "source": map[string]any{"volumeHandle": "v"}},
		}}, metav1.CreateOptions{})
	}
	_, _ = snapshots.Patch(ctx, snapshot.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{FieldManager: "snapshot-controller"})
}

// contentOf is the name of the content of a VolumeSnapshot.
func contentOf(snapshot *unstructured.Unstructured) string {
	if name, _, _ := unstructured.NestedString(snapshot.Object, "spec", "source", "volumeSnapshotContentName"); name != "" {
		return name
	}
	return "snapcontent-" + string(snapshot.GetUID())
}

// A rollback could not bring the data of a snapshot back: its controller destroys them at once.
func TestADeletionOfASnapshotIsRefusedBeforeItsDataAreDestroyed(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	e.Refuse()
	outsideKinds(t, e)
	group := operatorKinds(t, e)
	snapshotController(t, e)
	e.Apply("{apiVersion: " + group + "/v1, kind: Database, metadata: {name: d}}")
	e.Apply("{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {name: nightly" + ownerOf(e, group+"/v1 Database/d") + "}, spec: {source: {persistentVolumeClaimName: data}}}")
	content := contentRef + contentOf(e.Object(snapshotRef+"nightly"))
	e.Until("it has its content", func() bool {
		return e.Object(content) != nil && len(e.Object(snapshotRef+"nightly").GetFinalizers()) > 0
	})
	before := e.Object(content)
	e.Start()
	const deletion = "changes:\n  - {type: Delete, target: {apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, name: nightly}, acceptLoss: ACCEPT}"

	txn := e.Run("refused", strings.Replace(deletion, "ACCEPT", "false", 1)+fixture.RefusedAtCommit)
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	_, reason, message := harness.Condition(txn, api.ConditionReady)
	assert.Equal(t, errclass.Irreversible, reason)
	assert.Contains(t, message, "a rollback would take another snapshot")
	e.Same(before, content)

	owner := e.Run("owner", deleteOf(group, "Database", "d", ""))
	assert.Equal(t, api.PhaseFailed, owner.Status.Phase, harness.Describe(owner))
	_, reason, message = harness.Condition(owner, api.ConditionReady)
	assert.Equal(t, errclass.Irreversible, reason)
	assert.Contains(t, message, "it owns VolumeSnapshot "+e.Namespace+"/nightly: a rollback would take another snapshot")
	e.Same(before, content)

	txn = e.Run("accepted", strings.Replace(deletion, "ACCEPT", "true", 1)+fixture.RefusedAtCommit)
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Contains(t, txn.Status.Items[0].Warnings[0], "a rollback would take another snapshot")
	assert.Contains(t, txn.Status.Items[0].Message, "another snapshot is taken, of the data as they are now")
	assert.Nil(t, e.Object(content), "the data are lost")
	e.NothingLeft("accepted")
}

// What is outside of the cluster may be destroyed by any operator that says so.
func TestADeletionByWhichAnOperatorDestroysWhatIsOutsideIsRefused(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	group := operatorKinds(t, e)
	e.Start()
	for name, spec := range map[string]string{"policy": "{deletionPolicy: Delete}", "managed": `{forProvider: {region: north}, managementPolicies: ["*"]}`} {
		e.Apply("{apiVersion: " + group + "/v1, kind: Database, metadata: {name: " + name + "}, spec: " + spec + "}")
		txn := e.Run("delete-"+name, deleteOf(group, "Database", name, ""))
		assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
		_, reason, message := harness.Condition(txn, api.ConditionReady)
		assert.Equal(t, errclass.Irreversible, reason)
		assert.Contains(t, message, "destroy with it what it stands for")
		assert.NotNil(t, e.Object(group+"/v1 Database/"+name))
	}
	e.Apply("{apiVersion: " + group + "/v1, kind: Database, metadata: {name: kept}, spec: {deletionPolicy: Orphan, forProvider: {}}}")
	txn := e.Run("delete-kept", deleteOf(group, "Database", "kept", ""))
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
}

// An undo of a Create keeps what a rollback of it keeps.
func TestAnUndoKeepsWhatARollbackWouldKeep(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, change, before, reason, says string
		// use has others use the object; then ref must be there as it was.
		use func(e *harness.Env)
		ref string
	}{
		{
			name: "content of a snapshot", reason: errclass.Irreversible, says: "volumesnapshotcontents NS, which was there before, would be destroyed with it",
			before: "{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotContent, metadata: {name: NS, labels: {of: NS}}, spec: {deletionPolicy: Delete, source: {snapshotHandle: old}, volumeSnapshotRef: {name: s, namespace: NS}}}",
			change: "{type: Create, target: {apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, name: s}, content: {spec: {source: {volumeSnapshotContentName: NS}}}}",
			ref:    contentRef + "NS",
			use: func(e *harness.Env) {
				e.Until("it is bound", func() bool { return len(e.Object(snapshotRef+"s").GetFinalizers()) > 0 })
			},
		},
		{
			name: "Endpoints of a Service", reason: errclass.NotEmpty, says: "Endpoints NS/database were there before it", before: endpoints,
			change: "{type: Create, target: {apiVersion: v1, kind: Service, name: database}, content: {spec: {ports: [{port: 5432}]}}}",
			ref:    "Endpoints/database",
		},
		{
			name: "a volume that others have claimed", reason: errclass.NotEmpty, says: "PersistentVolumeClaim NS/theirs",
			change: "{type: Create, target: {apiVersion: v1, kind: PersistentVolume, name: NS}, content: {spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Retain, storageClassName: NS, hostPath: {path: /nowhere}}}}",
			use: func(e *harness.Env) {
				e.Apply("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: theirs}, spec: {accessModes: [ReadWriteOnce], storageClassName: " + e.Namespace + ", resources: {requests: {storage: 1Gi}}}}")
				e.Until("it is bound", func() bool { return e.Value("PersistentVolumeClaim/theirs", "status", "phase") == "Bound" })
			},
			ref: "PersistentVolume/NS",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.ClusterWide()
			outsideKinds(t, e)
			snapshotController(t, e)
			here := func(text string) string { return strings.ReplaceAll(text, "NS", e.Namespace) }
			if row.before != "" {
				e.Apply(here(row.before))
				e.NextSecond()
			}
			dropVolume(t, e)
			e.Start()
			txn := e.Run("release", "revisionHistoryLimit: 10\nchanges:\n  - "+here(row.change)+"\n")
			require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			if row.use != nil {
				row.use(e)
			}
			before := e.Object(here(row.ref))
			undo := e.Run("undo", "{undoOf: {name: release}}")
			assert.Equal(t, api.PhaseFailed, undo.Status.Phase, harness.Describe(undo))
			_, reason, message := harness.Condition(undo, api.ConditionReady)
			assert.Equal(t, row.reason, reason)
			assert.Contains(t, message, here(row.says))
			assert.Contains(t, message, "set acceptLoss: true")
			e.Same(before, here(row.ref))
			assert.Nil(t, e.Object(here(row.ref)).GetDeletionTimestamp())
			e.NothingLeft("undo")
		})
	}
}

// dropVolume deletes the volume of a test, if there is one.
func dropVolume(t *testing.T, e *harness.Env) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.Background()
		volumes := e.Kube.CoreV1().PersistentVolumes()
		_ = volumes.Delete(ctx, e.Namespace, metav1.DeleteOptions{})
		_, _ = volumes.Patch(ctx, e.Namespace, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
}

// The claim that has bound a volume is no other client's if the undo deletes it too.
func TestAnUndoOfAVolumeAndItsClaimDeletesBoth(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	dropVolume(t, e)
	e.Start()
	txn := e.Run("release", strings.ReplaceAll(`
revisionHistoryLimit: 10
changes:
  - type: Create
    target: {apiVersion: v1, kind: PersistentVolume, name: NAME}
    content: {spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Retain, storageClassName: NAME, hostPath: {path: /nowhere}}}
  - type: Create
    target: {apiVersion: v1, kind: PersistentVolumeClaim, name: data}
    content: {spec: {accessModes: [ReadWriteOnce], storageClassName: NAME, resources: {requests: {storage: 1Gi}}}}
    readyWhen: {expression: "object.status.phase == 'Bound'", timeout: 60s}
`, "NAME", e.Namespace))
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	undo := e.Run("undo", "{undoOf: {name: release}}")
	assert.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
	assert.Nil(t, e.Object("PersistentVolumeClaim/data"))
	assert.Nil(t, e.Object("PersistentVolume/"+e.Namespace))
}
