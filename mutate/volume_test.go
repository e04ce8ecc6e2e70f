package mutate_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

const claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}}"

// bound makes a claim that is bound to a volume of its own.
func (e *env) bound(policy string) (volume *unstructured.Unstructured) {
	e.t.Helper()
	volume = parse(e.t, `
apiVersion: v1
kind: PersistentVolume
metadata: {name: `+e.namespace+`}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: `+policy+`
  storageClassName: ""
  hostPath: {path: /nowhere}
`)
	_, err := e.resource(volume).Create(e.t.Context(), volume, metav1.CreateOptions{})
	require.NoError(e.t, err)
	e.t.Cleanup(func() {
		ctx := context.Background()
		_ = e.resource(volume).Delete(ctx, volume.GetName(), metav1.DeleteOptions{})
		_, _ = e.resource(volume).Patch(ctx, volume.GetName(), "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	e.apply("kubectl", `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: `+volume.GetName()+`, resources: {requests: {storage: 1Gi}}}
`)
	e.awaitBound(volume)
	return volume
}

func (e *env) awaitBound(volume *unstructured.Unstructured) {
	e.t.Helper()
	e.within("the claim is bound", func() bool {
		now := e.live(parse(e.t, claim))
		holder, _, _ := unstructured.NestedString(e.live(volume).Object, "spec", "claimRef", "uid")
		return value(e.t, now, "status", "phase") == "Bound" && holder == string(now.GetUID())
	})
}

func TestClaimOfARetainedVolumeIsBoundAgain(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	volume := e.bound("Retain")
	i := e.plan(0, api.Delete, claim)
	require.NoError(t, i.tryPrepare())
	i.warned("volume "+volume.GetName()+" is retained", "patch on persistentvolumes")
	i.landed()
	i.wire.requests()
	i.undone()
	e.awaitBound(volume)
	assert.Equal(t, i.record.Before.Object["spec"], i.now().Object["spec"])
	assert.True(t, owns(i.now(), "kubectl", ".spec.volumeName"))
	assert.Empty(t, i.report.Notes)
	i.undone()
	e.awaitBound(volume)
}

func TestClaimOfARetainedVolumeGoesOnAfterACrashAtAnyRequest(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	volume := e.bound("Retain")
	for n := range 6 { // GET twice, GET and PATCH of the volume, POST, PATCH
		for _, lose := range []bool{false, true} {
			i := e.plan(0, api.Delete, claim)
			require.NoError(t, i.tryPrepare())
			i.landed()
			interrupt := i.wire.refuseNth
			if lose {
				interrupt = i.wire.loseNth
			}
			interrupt(n)
			fails(t, i.undo(), errclass.Unknown, errclass.ServerUnavailable)
			i.wire.requests()
			i.undone()
			e.awaitBound(volume)
		}
	}
}

// Another client writes the volume between the look and the write.
func TestClaimMeetsAWriterOfItsVolume(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	volume := e.bound("Retain")
	i := e.prepare(0, api.Delete, claim)
	i.landed()
	i.wire.requests()
	i.wire.set(func(n int) {
		if n == 3 {
			e.merge("somebody", volume, `{"metadata":{"labels":{"a":"b"}}}`)
		}
	})
	i.undone()
	e.awaitBound(volume)
	assert.Equal(t, "b", e.live(volume).GetLabels()["a"])
}

func TestClaimWhoseVolumeSomebodyElseHasIsAConflict(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	volume := e.bound("Retain")
	i := e.prepare(0, api.Delete, claim)
	i.landed()
	e.merge("somebody", volume, `{"spec":{"claimRef":{"name":"other","uid":null,"resourceVersion":null}}}`)
	for _, force := range []bool{false, true} {
		i.effect.Overwrite = force
		fails(t, i.undo(), errclass.Conflict, errclass.Drifted, volume.GetName(), "/other")
	}
	assert.Nil(t, i.now())
}

func TestClaimWhoseVolumeWouldBeDeletedIsRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	volume := e.bound("Delete")
	i := e.accepted(claim, "reclaim policy of its volume "+volume.GetName()+" is Delete")
	i.landed()
	e.merge("test", volume, `{"metadata":{"finalizers":null}}`)
	e.askToRemove(volume)
	e.within("the volume is gone", func() bool { return e.live(volume) == nil })
	i.undone()
	assert.Equal(t, []string{"its volume " + volume.GetName() + " is gone, and the data with it: the claim waits for a volume of that name"}, i.report.Notes)
	assert.Equal(t, volume.GetName(), value(t, i.now(), "spec", "volumeName"))
}

func TestClaimWithoutAVolumeIsRecreated(t *testing.T) {
	t.Parallel()
	const unbound = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}}"
	e := newEnv(t)
	e.create(unbound)
	i := e.plan(0, api.Delete, unbound)
	require.NoError(t, i.tryPrepare())
	i.landed()
	i.undone()
	i.restored()
}

func TestClaimWhoseVolumeMayNotBeReadOrFreed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	volume := e.bound("Retain")
	own, read := rule("", "persistentvolumeclaims", "get", "delete", "create", "patch"), rule("", "persistentvolumes", "get")
	i := e.plan(0, api.Delete, claim).by(e.deployer(own))
	fails(t, i.tryPrepare(), errclass.Terminal, errclass.Irreversible, "cannot be told", "may not get persistentvolumes", "acceptLoss: true")
	e.grant(own, read)
	require.NoError(t, i.tryPrepare())
	i.landed()
	fails(t, i.undo(), errclass.Terminal, errclass.AccessDenied, "get and patch on persistentvolumes", "kubectl patch pv "+volume.GetName())
	assert.Nil(t, i.now())
	// The way out that the error names.
	e.merge("admin", volume, `{"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`)
	i.undone()
	e.awaitBound(volume)
}
