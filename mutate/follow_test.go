package mutate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

// undoing prepares the Update that undoes a change which has committed.
func (i *item) undoing() *item {
	i.t.Helper()
	undo, err := i.inverse(api.Update)
	require.NoError(i.t, err)
	require.NoError(i.t, patiently(undo.tryPrepare))
	return undo
}

func webPatch(container string) string {
	return strings.Replace(deploymentPatch(container), "name: shop", "name: web", 1)
}

// The content of an undo is the object as it was when the undo was prepared, but for what is undone.
func TestAnUndoKeepsWhatIsWrittenSinceItWasPrepared(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(deployment)
	undo := e.prepare(0, api.Patch, webPatch("{name: web, image: 'example.com/web:2'}")).done().undoing()
	e.merge("kube-controller-manager", obj, `{"spec":{"replicas":7}}`, "scale")
	e.merge("kubectl-edit", obj, `{"metadata":{"annotations":{"note":"x"}}}`)
	e.apply("injector", webPatch("{name: beside, image: 'example.com/beside:1'}"))
	undo.finds(outcome.NotApplied)
	undo.done()
	undo.finds(outcome.Applied)
	now := undo.now()
	names, all := containers(t, now)
	assert.Equal(t, []string{"web", "beside"}, names)
	assert.Equal(t, "example.com/web:1", all["web"]["image"])
	assert.EqualValues(t, 7, value(t, now, "spec", "replicas"))
	assert.Equal(t, "x", now.GetAnnotations()["note"])
	assert.True(t, owns(now, "injector", `.spec.template.spec.containers[name="beside"].image`))
	assert.Empty(t, undo.made.Warnings)

	undo.undone()
	now = undo.now()
	names, all = containers(t, now)
	assert.Equal(t, []string{"web", "beside"}, names)
	assert.Equal(t, "example.com/web:2", all["web"]["image"])
	assert.EqualValues(t, 7, value(t, now, "spec", "replicas"))
	assert.Equal(t, "x", now.GetAnnotations()["note"])
}

func TestWhatIsWrittenOverAnUndoIsDrift(t *testing.T) {
	t.Parallel()
	for name, image := range map[string]string{"another value": "example.com/web:3", "the same value": "example.com/web:2"} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.create(deployment)
			undo := e.prepare(0, api.Patch, webPatch("{name: web, image: 'example.com/web:2'}")).done().undoing()
			e.apply("kubectl-edit", webPatch("{name: web, image: '"+image+"'}"))
			fails(t, patiently(undo.do), errclass.Conflict, errclass.Drifted, `.spec.template.spec.containers[name="web"].image of`, "kubectl-edit")
			_, all := containers(t, undo.now())
			assert.Equal(t, image, all["web"]["image"])
		})
	}
}

// A volume that a claim binds and leaves while its policy is undone would be destroyed with its data.
func TestAnUndoThatKeepsWhatIsWrittenAsksWhatItDestroys(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	name := e.namespace
	volume := e.create("{apiVersion: v1, kind: PersistentVolume, metadata: {name: " + name + "}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Delete, storageClassName: " + name + ", hostPath: {path: /nowhere}}}")
	undo := e.prepare(0, api.Patch, "{apiVersion: v1, kind: PersistentVolume, metadata: {name: "+name+"}, spec: {persistentVolumeReclaimPolicy: Retain}}").done().undoing()
	e.merge("kube-controller-manager", volume, `{"spec":{"claimRef":{"namespace":"`+name+`","name":"data","uid":"9be31c19-9d5b-4a4c-8f0e-0d6f6f1a3c50"}}}`)
	fails(t, patiently(undo.do), errclass.Terminal, errclass.Irreversible, "PersistentVolumeClaim "+name+"/data", "has been deleted since")
	assert.Equal(t, "Retain", value(t, undo.now(), "spec", "persistentVolumeReclaimPolicy"))
}
