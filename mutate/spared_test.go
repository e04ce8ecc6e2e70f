package mutate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// released is a Patch of a volume from Delete to Retain, after which the claim was deleted.
func (e *env) released() (*unstructured.Unstructured, *item) {
	e.t.Helper()
	volume := e.bound("Delete")
	i := e.prepare(0, api.Patch, "{apiVersion: v1, kind: PersistentVolume, metadata: {name: "+volume.GetName()+", labels: {a: b}}, spec: {persistentVolumeReclaimPolicy: Retain}}").done()
	e.remove(parse(e.t, claim))
	e.within("the volume is released", func() bool { return value(e.t, e.live(volume), "status", "phase") == "Released" })
	return volume, i
}

// The data of a claim that was deleted while its volume was retained is not destroyed, and
// every other field is restored.
func TestARollbackLeavesAReclaimPolicyThatWouldDestroyAVolume(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	volume, i := e.released()
	for range 2 {
		err := i.undo()
		fails(t, err, errclass.Terminal, errclass.Irreversible, "PersistentVolumeClaim "+e.namespace+"/data", "deleted since", "by hand")
		fields := errclass.FieldsOf(err)
		require.Len(t, fields, 1)
		assert.Equal(t, errclass.Field{Path: ".spec.persistentVolumeReclaimPolicy", Now: `"Retain"`, Before: `"Delete"`}, fields[0])
		assert.Equal(t, "Retain", value(t, e.live(volume), "spec", "persistentVolumeReclaimPolicy"))
		assert.Equal(t, "<absent>", value(t, e.live(volume), "metadata", "labels", "a"))
	}
	// Whatever is overwritten by force, that is not.
	i.effect.Overwrite = true
	fails(t, i.undo(), errclass.Terminal, errclass.Irreversible, "deleted since")
}

// A process that dies between values and owners leaves the same to the next one.
func TestASparedFieldIsToldAfterACrash(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	volume, i := e.released()
	i.wire.refuseNth(4) // Read the volume, and its claim twice; restore the values; then the owners.
	require.Error(t, i.undo())
	require.Equal(t, "<absent>", value(t, e.live(volume), "metadata", "labels", "a"), "the values are restored")
	fails(t, i.undo(), errclass.Terminal, errclass.Irreversible, "deleted since")
	assert.Equal(t, "Retain", value(t, e.live(volume), "spec", "persistentVolumeReclaimPolicy"))
}

// Both what others have written and what is spared is told.
func TestAConflictNamesSparedFieldsBeside(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	volume, i := e.released()
	e.merge("somebody", volume, `{"metadata":{"labels":{"a":"theirs"}}}`)
	err := i.undo()
	fails(t, err, errclass.Conflict, errclass.FieldConflict, ".metadata.labels.a", "deleted since")
	assert.Len(t, errclass.FieldsOf(err), 2)
}

// A Job that has finished is not deleted because its old time to live is over.
func TestARollbackLeavesATimeToLiveThatWouldDeleteAJob(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	job := e.create(`{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {suspend: true, ttlSecondsAfterFinished: 0, template: {spec: {restartPolicy: Never, containers: [{name: a, image: example.com/a}]}}}}`)
	i := e.prepare(0, api.Patch, "{apiVersion: batch/v1, kind: Job, metadata: {name: x, labels: {a: b}}, spec: {ttlSecondsAfterFinished: 3600}}").done()
	now := time.Now().UTC().Format(`"2006-01-02T15:04:05Z"`)
	e.merge("kube-controller-manager", job, `{"status":{"startTime":`+now+`,"conditions":[{"type":"FailureTarget","status":"True","lastTransitionTime":`+now+`},{"type":"Failed","status":"True","lastTransitionTime":`+now+`}]}}`, "status")
	fails(t, patiently(i.undo), errclass.Terminal, errclass.Irreversible, "it has finished")
	require.NotNil(t, i.now())
	assert.Equal(t, "<absent>", value(t, i.now(), "metadata", "labels", "a"))
}

// Whether older claims would be deleted has to be told before a StatefulSet is scaled back.
func TestAStatefulSetIsScaledBackOnlyWhereItsClaimsMayBeListed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {serviceName: x, replicas: 0, selector: {matchLabels: {app: x}},
      persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: example.com/a}]}},
      volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}}]}}`)
	own := rule("apps", "statefulsets", "get", "patch")
	i := e.plan(0, api.Patch, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {replicas: 1}}").by(e.deployer(own))
	require.NoError(t, patiently(i.tryPrepare))
	i.warned("may not list persistentvolumeclaims")
	i.done()
	made := parse(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-x-0}}")
	e.within("the claim is there", func() bool { return e.live(made) != nil })
	fails(t, patiently(i.undo), errclass.Terminal, errclass.AccessDenied, "may not list persistentvolumeclaims", "grant it list")
	e.grant(own, rule("", "persistentvolumeclaims", "list"))
	i.undone()
	e.within("the claim is gone", func() bool { return e.live(made) == nil })
}
