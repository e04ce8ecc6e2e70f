package mutate_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate"
)

var outsideOnce sync.Once

// outside installs the kinds that stand for something outside.
func (e *env) outside() {
	e.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "crds", "outside.yaml"))
	require.NoError(e.t, err)
	outsideOnce.Do(func() { require.NoError(e.t, e.ApplyYAML(e.t.Context(), "", string(text))) })
	for _, kind := range []string{
		"snapshot.storage.k8s.io/v1, kind: VolumeSnapshot", "snapshot.storage.k8s.io/v1, kind: VolumeSnapshotContent",
		"groupsnapshot.storage.k8s.io/v1beta2, kind: VolumeGroupSnapshot", "groupsnapshot.storage.k8s.io/v1beta2, kind: VolumeGroupSnapshotContent",
		"objectstorage.k8s.io/v1alpha2, kind: BucketClaim", "objectstorage.k8s.io/v1alpha2, kind: Bucket",
	} {
		gvk := parse(e.t, "{apiVersion: "+kind+", metadata: {name: x}}").GroupVersionKind()
		e.within(kind+" is served", func() bool {
			client, err := e.For(gvk, e.namespace)
			if err != nil {
				return false
			}
			_, err = client.List(e.t.Context(), metav1.ListOptions{Limit: 1})
			return err == nil
		})
	}
}

// here fills in the names of a test.
func (e *env) here(text string) string { return strings.ReplaceAll(text, "NS", e.namespace) }

// outsideRow is an object that is to be deleted, and what was there before it.
type outsideRow struct {
	name, object, holder, bound string
	// lost is what the refusal says, empty where nothing is lost, and note what a rollback says
	// that was told to accept it.
	lost, note string
}

const (
	snapshotKind  = "apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot"
	groupKind     = "apiVersion: groupsnapshot.storage.k8s.io/v1beta2, kind: VolumeGroupSnapshot"
	bucketVersion = "apiVersion: objectstorage.k8s.io/v1alpha2"
)

func outsideRows() []outsideRow {
	const (
		named     = "{" + snapshotKind + ", metadata: {name: s}, spec: {source: {volumeSnapshotContentName: NS}}}"
		group     = "{" + groupKind + ", metadata: {name: g}, spec: {source: {volumeGroupSnapshotContentName: NS}}}"
		claim     = "{" + bucketVersion + ", kind: BucketClaim, metadata: {name: b}, spec: {existingBucketName: NS}}"
		holder    = "{" + snapshotKind + "Content, metadata: {name: NS}, spec: {deletionPolicy: POLICY, source: {snapshotHandle: old}, volumeSnapshotRef: {name: s, namespace: NS}}}"
		another   = "another snapshot, of the data as they are by then"
		taken     = "another snapshot is taken, of the data as they are now"
		kept      = "is bound to it by its uid"
		keptNote  = "NS is kept, but bound to the object that was deleted"
		destroyed = " is Delete, so its data would be lost"
	)
	with := func(policy string) string { return strings.Replace(holder, "POLICY", policy, 1) }
	return []outsideRow{
		{name: "a VolumeSnapshot of a claim", object: "{" + snapshotKind + ", metadata: {name: s}, spec: {source: {persistentVolumeClaimName: data}}}", lost: another, note: taken},
		{name: "a VolumeSnapshot of content that is deleted with it", object: named, holder: with("Delete"), lost: "volumesnapshotcontents NS" + destroyed, note: "volumesnapshotcontents NS does not exist"},
		{name: "a VolumeSnapshot of content that is retained and bound", object: named, holder: with("Retain"), bound: `{"spec":{"volumeSnapshotRef":{"uid":"UID"}}}`, lost: kept, note: keptNote},
		{name: "a VolumeSnapshot of content that is retained and free", object: named, holder: with("Retain")},
		{name: "a VolumeSnapshot of content that does not exist", object: named, note: "volumesnapshotcontents NS does not exist"},
		{name: "content that is deleted", object: with("Delete"), lost: "what spec.source.snapshotHandle names" + destroyed, note: "what spec.source.snapshotHandle names was destroyed with it"},
		{name: "content that is retained", object: with("Retain")},
		{name: "content that was made of a volume", object: "{" + snapshotKind + "Content, metadata: {name: NS}, spec: {deletionPolicy: Retain, source: {volumeHandle: v}}}", lost: another, note: taken},
		{name: "a group of snapshots", object: "{" + groupKind + ", metadata: {name: g}, spec: {source: {selector: {matchLabels: {a: b}}}}}", lost: another, note: taken},
		{
			name: "a group of snapshots that is retained and bound", object: group, bound: `{"spec":{"volumeGroupSnapshotRef":{"uid":"UID"}}}`, lost: kept, note: keptNote,
			holder: "{" + groupKind + "Content, metadata: {name: NS}, spec: {deletionPolicy: Retain, source: {groupSnapshotHandles: {volumeGroupSnapshotHandle: g}}}}",
		},
		{name: "a BucketClaim", object: "{" + bucketVersion + ", kind: BucketClaim, metadata: {name: b}, spec: {bucketClassName: c}}", lost: "another bucket, which is empty", note: "another bucket is made, which is empty"},
		{
			name: "a BucketClaim of a Bucket that is deleted with it", object: claim, lost: "buckets NS" + destroyed, note: "buckets NS was destroyed with it",
			holder: "{" + bucketVersion + ", kind: Bucket, metadata: {name: NS}, spec: {deletionPolicy: Delete, existingBucketID: b}}",
		},
		{
			name: "a BucketClaim of a Bucket that is retained and bound", object: claim, bound: `{"spec":{"bucketClaimRef":{"uid":"UID"}}}`, lost: kept, note: keptNote,
			holder: "{" + bucketVersion + ", kind: Bucket, metadata: {name: NS}, spec: {deletionPolicy: Retain, existingBucketID: b}}",
		},
		{name: "a Bucket that is retained", object: "{" + bucketVersion + ", kind: Bucket, metadata: {name: NS}, spec: {deletionPolicy: Retain, existingBucketID: b}}"},
		{name: "any custom resource with such a policy", object: "{apiVersion: example.com/v1, kind: Depot, metadata: {name: w}, spec: {reclaimPolicy: Delete}}", lost: "its spec.reclaimPolicy", note: "destroyed by its spec.reclaimPolicy"},
	}
}

// placed creates an object that has no namespace until the test ends, too.
func (e *env) placed(text string) *unstructured.Unstructured {
	e.t.Helper()
	obj := parse(e.t, text)
	out := e.create(text)
	e.t.Cleanup(func() { e.clear(obj) })
	return out
}

// clear deletes an object, whatever finalizers it has.
func (e *env) clear(obj *unstructured.Unstructured) {
	ctx := context.Background() // That of the test has ended.
	_ = e.resource(obj).Delete(ctx, obj.GetName(), metav1.DeleteOptions{})
	_, _ = e.resource(obj).Patch(ctx, obj.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
}

// nextSecond waits until what is made has a later creationTimestamp than an object.
func (e *env) nextSecond(after *unstructured.Unstructured) {
	e.t.Helper()
	made := after.GetCreationTimestamp()
	e.within("the next second has begun", func() bool {
		now, err := e.Kube.CoreV1().ConfigMaps(e.namespace).Create(e.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "now-"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		require.NoError(e.t, err)
		return made.Before(&now.CreationTimestamp)
	})
}

func TestADeletionThatDestroysWhatIsOutsideIsRefused(t *testing.T) {
	t.Parallel()
	newEnv(t).crd("Depot", "depots")
	for _, row := range outsideRows() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.outside()
			var holder *unstructured.Unstructured
			if row.holder != "" {
				holder = e.placed(e.here(row.holder))
			}
			object := e.here(row.object)
			obj := e.placed(object)
			if row.bound != "" {
				e.merge("snapshot-controller", holder, strings.Replace(row.bound, "UID", string(obj.GetUID()), 1))
			}
			if row.lost == "" {
				i := e.prepare(0, api.Delete, object)
				for _, w := range i.warnings {
					assert.NotContains(t, w, "cannot undo its deletion")
				}
				i.done()
				i.undone()
				i.restored()
				i.noted(e.here(row.note))
				return
			}
			i := e.accepted(object, e.here(row.lost))
			i.done()
			if holder != nil && strings.Contains(row.note, "does not exist") {
				e.remove(holder)
			}
			i.undone()
			i.noted(e.here(row.note))
		})
	}
}

// noted asserts what the last undo said beside; nothing if that is empty.
func (i *item) noted(text string) {
	i.t.Helper()
	if text == "" {
		assert.Empty(i.t, i.report.Notes)
		return
	}
	require.Len(i.t, i.report.Notes, 1)
	assert.Contains(i.t, i.report.Notes[0], text)
}

// What the ServiceAccount may not read may be destroyed.
func TestAVolumeSnapshotWhoseContentMayNotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.outside()
	text := e.here("{" + snapshotKind + ", metadata: {name: s}, spec: {source: {volumeSnapshotContentName: NS}}}")
	e.create(text)
	i := e.plan(0, api.Delete, text).by(e.deployer(rule("snapshot.storage.k8s.io", "volumesnapshots", "get", "delete", "create", "patch")))
	fails(t, i.tryPrepare(), errclass.Terminal, errclass.Irreversible, "cannot be told", "may not get volumesnapshotcontents", "acceptLoss: true")
	i.change.Options.AcceptLoss = true
	require.NoError(t, i.tryPrepare())
	i.done()
	i.undone()
	assert.Empty(t, i.report.Notes)
}

// inverse plans the change that undoes one that has committed.
func (i *item) inverse(as api.ChangeType) (undo *item, err error) {
	i.t.Helper()
	require.NoError(i.t, mutate.HandOver(i.t.Context(), i.change, i.owners, i.baseline, nil))
	undo = i.plan(1, as, i.text())
	undo.change.Options.Inverts = true
	undo.change.Content, _, _, err = undo.invert(i)
	return undo, err
}

func (i *item) text() string {
	i.t.Helper()
	text, err := i.object.MarshalJSON()
	require.NoError(i.t, err)
	return string(text)
}

func (i *item) invert(of *item) (map[string]any, []metav1.ManagedFieldsEntry, []string, error) {
	original := mutate.Original{Record: of.record, Marker: of.change.Names.Marker, First: of.record.Before}
	return i.change.Invert(i.t.Context(), api.ChangeType(i.record.Type), []mutate.Original{original}, i.now())
}

// An undo asks what a rollback asks, when it is prepared and again when it is made.
func TestAnUndoOfACreateAsksWhatARollbackAsks(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, before, object string
		// use has others use the object after it was created.
		use    func(e *env)
		class  errclass.Class
		reason string
		says   string
	}{
		{
			name: "a VolumeSnapshot of content that was there before", class: errclass.Terminal, reason: errclass.Irreversible, says: "which was there before, would be destroyed with it",
			before: "{" + snapshotKind + "Content, metadata: {name: NS}, spec: {deletionPolicy: Delete, source: {snapshotHandle: old}}}",
			object: "{" + snapshotKind + ", metadata: {name: s}, spec: {source: {volumeSnapshotContentName: NS}}}",
		},
		{
			name: "a Service for Endpoints that were there before", class: errclass.Conflict, reason: errclass.NotEmpty, says: "Endpoints NS/database were there before it",
			before: "{apiVersion: v1, kind: Endpoints, metadata: {name: database}, subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{port: 5432}]}]}",
			object: "{apiVersion: v1, kind: Service, metadata: {name: database}, spec: {ports: [{port: 5432, protocol: TCP}]}}",
		},
		{
			name: "a volume that others have claimed", class: errclass.Conflict, reason: errclass.NotEmpty, says: "PersistentVolumeClaim NS/theirs",
			object: "{apiVersion: v1, kind: PersistentVolume, metadata: {name: NS}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Retain, storageClassName: NS, hostPath: {path: /nowhere}}}",
			use: func(e *env) {
				theirs := e.create(e.here("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: theirs}, spec: {accessModes: [ReadWriteOnce], storageClassName: NS, resources: {requests: {storage: 1Gi}}}}"))
				e.within("it is bound", func() bool { return value(e.t, e.live(theirs), "status", "phase") == "Bound" })
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.outside()
			if row.before != "" {
				e.nextSecond(e.placed(e.here(row.before)))
			}
			i := e.prepare(0, api.Create, e.here(row.object)).done()
			t.Cleanup(func() { e.clear(i.object) })
			if row.use == nil {
				row.use = func(*env) {}
			}
			row.use(e)
			undo, err := i.inverse(api.Delete)
			fails(t, err, row.class, row.reason, e.here(row.says), "set acceptLoss: true")
			undo.change.Options.AcceptLoss = true
			_, _, notes, err := undo.invert(i)
			require.NoError(t, err)
			require.Len(t, notes, 1)
			assert.Contains(t, notes[0], e.here(row.says))
			require.NoError(t, undo.tryPrepare())
			undo.change.Options.AcceptLoss = false
			fails(t, undo.do(), row.class, row.reason, e.here(row.says))
			assert.NotNil(t, undo.now())
			assert.Nil(t, undo.now().GetDeletionTimestamp())
		})
	}
}
