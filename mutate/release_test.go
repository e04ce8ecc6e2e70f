package mutate_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
	"janus.io/janus/mutate"
)

const image = `.spec.template.spec.containers[name="web"].image`

// release plans a Patch that releases what managers own of an object, to another manager.
func (e *env) release(obj *unstructured.Unstructured, to string, fields []string, managers ...string) *item {
	e.t.Helper()
	i := e.plan(0, api.Patch, "{apiVersion: "+obj.GetAPIVersion()+", kind: "+obj.GetKind()+", metadata: {name: "+obj.GetName()+"}}")
	i.change.Content, i.change.Release = nil, &fieldmerge.Release{Managers: managers, Fields: fields, To: to}
	i.owners.FieldManager, i.owners.Release = to, i.change.Release
	return i
}

// prepared is an item that has been prepared.
func (i *item) prepared() *item {
	i.t.Helper()
	require.NoError(i.t, patiently(i.tryPrepare))
	return i
}

// patched is what kubectl patch of the image and the replicas, and kubectl scale after that, leave.
func (e *env) patched() *unstructured.Unstructured {
	e.t.Helper()
	obj := e.create(deployment)
	got, err := e.resource(obj).Patch(e.t.Context(), obj.GetName(), types.StrategicMergePatchType,
		[]byte(`{"metadata":{"annotations":{"note.x":"y"}},"spec":{"replicas":4,"template":{"spec":{"containers":[{"name":"web","image":"example.com/web:p"},{"name":"more","image":"example.com/more:p"}]}}}}`),
		metav1.PatchOptions{FieldManager: "kubectl-patch"})
	require.NoError(e.t, err)
	e.merge("kubectl-scale", got, `{"spec":{"replicas":3}}`, "scale")
	return e.age(obj)
}

// applies applies the next version of a Deployment as kubectl does it, without force.
func (e *env) applies(obj *unstructured.Unstructured) error {
	next := parse(e.t, deploymentChanged)
	_, err := e.resource(obj).Apply(e.t.Context(), obj.GetName(), next, metav1.ApplyOptions{FieldManager: "kubectl"})
	return err
}

func TestReleasedFieldsGoToTheManagerThatIsNamed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.patched()
	require.ErrorContains(t, e.applies(obj), "conflict")
	before := e.live(obj)
	i := e.release(obj, "kubectl", nil, "kubectl-patch", "kubectl-scale").prepared()
	i.sent("")
	assert.False(t, i.idle, "who owns it changes")
	got := map[string][]string{}
	for _, owned := range i.forecast.Taken {
		got[owned.Manager+" "+owned.Subresource] = owned.Paths
	}
	assert.Contains(t, got["kubectl-patch "], image)
	assert.Contains(t, got["kubectl-patch "], ".metadata.annotations.note.x")
	assert.Equal(t, []string{".spec.replicas"}, got["kubectl-scale scale"])

	i.done().finds(outcome.Applied)
	assert.True(t, owns(i.now(), "kubectl-patch", image), "until the commit")
	i.handedOver()
	now := i.now()
	assert.Equal(t, []string{"kubectl Apply"}, managers(now))
	for _, path := range []string{image, ".spec.replicas", ".metadata.annotations.note.x", `.spec.template.spec.containers[name="more"].image`} {
		assert.True(t, owns(now, "kubectl", path), path)
	}
	assert.Equal(t, before.Object["spec"], now.Object["spec"], "no value has changed")
	assert.Equal(t, before.GetGeneration(), now.GetGeneration())
	i.handedOver()
	require.NoError(t, e.applies(obj))
	assert.Len(t, value(t, e.live(obj), "spec", "template", "spec", "containers"), 1, "what the manifest does not have goes")
}

func TestAReleaseIsRolledBackBeforeTheCommit(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.release(e.patched(), "kubectl", nil, "kubectl-patch").prepared().done()
	i.undone()
	i.restored()
	i.finds(outcome.NotApplied)
}

func TestFieldsAreReleasedToNobody(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.patched()
	e.release(obj, "", nil, "kubectl-patch", "kubectl-scale").prepared().done().handedOver()
	assert.Equal(t, []string{"kubectl Apply"}, managers(e.live(obj)))
	assert.False(t, owns(e.live(obj), "kubectl", image))
	require.NoError(t, e.applies(obj))
	assert.Len(t, value(t, e.live(obj), "spec", "template", "spec", "containers"), 2, "nobody removes what nobody owned")
}

func TestOnlySomeFieldsAreReleased(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.patched()
	e.release(obj, "kubectl", []string{`.spec.template.spec.containers[name="web"]`, ".spec.replicas"}, "kubectl-patch", "kubectl-scale").prepared().done().handedOver()
	now := e.live(obj)
	assert.True(t, owns(now, "kubectl", image))
	assert.False(t, owns(now, "kubectl-patch", image))
	for _, path := range []string{`.spec.template.spec.containers[name="more"].image`, ".metadata.annotations.note.x"} {
		assert.True(t, owns(now, "kubectl-patch", path), path)
		assert.False(t, owns(now, "kubectl", path), path)
	}
}

// An apply of what a manager owns writes the items of a list, and the parts that others own of
// what it owns, as they are.
func TestAReleaseLeavesListsAndPartsOfOthersAsTheyAre(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(deployment)
	e.merge("kubectl-edit", obj, `{"metadata":{"annotations":{"b":"1"},"finalizers":["example.com/z","example.com/a"]},"spec":{"template":{"spec":{
		"tolerations":[{"key":"z","operator":"Exists"},{"key":"a","operator":"Exists"}],
		"containers":[{"name":"z","image":"example.com/z:1","args":["--b","--a"],"ports":[{"containerPort":81},{"containerPort":80}]},{"name":"web","image":"example.com/web:1"}]}}}}`)
	e.apply("other", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {a: '1'}, finalizers: [example.com/y]}}")
	before := e.age(obj)
	i := e.release(obj, "kubectl", nil, "kubectl-edit").prepared().done()
	now := i.now()
	assert.Equal(t, before.Object["spec"], now.Object["spec"])
	assert.Equal(t, []string{"1", "1"}, []string{now.GetAnnotations()["a"], now.GetAnnotations()["b"]})
	assert.Equal(t, before.GetFinalizers(), now.GetFinalizers())
	assert.False(t, owns(now, i.change.Names.Manager, ".metadata.annotations.a"))
	i.handedOver()
	assert.ElementsMatch(t, []string{"kubectl Apply", "other Apply"}, managers(i.now()))
	assert.True(t, owns(i.now(), "kubectl", `.metadata.finalizers[="example.com/z"]`))
	e.merge("cleanup", obj, `{"metadata":{"finalizers":null}}`)
}

func TestWhoOwnsAReleasedFieldTooKeepsIt(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(settings)
	e.merge("kubectl-patch", obj, `{"data":{"color":"red"}}`)
	e.apply("other", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red}}")
	i := e.release(obj, "kubectl", nil, "kubectl-patch").prepared()
	require.Len(t, i.warnings, 1)
	assert.Contains(t, i.warnings[0], "other owns .data.color too, and keeps it")
	i.done().handedOver()
	assert.ElementsMatch(t, []string{"kubectl Apply", "other Apply"}, managers(i.now()))
	assert.True(t, owns(i.now(), "other", ".data.color"))
	assert.False(t, owns(i.now(), "kubectl", ".data.color"), "another manager owns it")
}

// Of a manager by which a tool updated before it applied, the updates are released to it.
func TestWhoGetsAReleaseKeepsWhatItApplied(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(settings)
	e.merge("kubectl", obj, `{"data":{"color":"red"}}`)
	require.Equal(t, []string{"kubectl Apply", "kubectl Update"}, managers(e.live(obj)))
	e.release(obj, "kubectl", nil, "kubectl").prepared().done().handedOver()
	assert.Equal(t, []string{"kubectl Apply"}, managers(e.live(obj)))
	assert.True(t, owns(e.live(obj), "kubectl", ".data.color"))
	assert.True(t, owns(e.live(obj), "kubectl", ".data.size"))
}

// What a released manager, or another, has written since the change is theirs.
func TestWhatIsWrittenSinceIsNotReleased(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"kubectl-patch", "somebody"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			obj := e.create(settings)
			e.merge("kubectl-patch", obj, `{"data":{"color":"red","size":"large"}}`)
			i := e.release(obj, "kubectl", nil, "kubectl-patch").prepared().done()
			e.merge(by, obj, `{"data":{"color":"green","shape":"round"}}`)
			i.handedOver()
			assert.True(t, owns(i.now(), by, ".data.color"))
			assert.True(t, owns(i.now(), by, ".data.shape"))
			assert.False(t, owns(i.now(), "kubectl", ".data.color"))
			assert.True(t, owns(i.now(), "kubectl", ".data.size"))
			assert.False(t, owns(i.now(), "kubectl-patch", ".data.size"))
		})
	}
}

// A released field that another client writes between preparation and change is theirs: its value
// is not set again. What is not released may change.
func TestAReleaseMeetsAWriterBeforeTheChange(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(settings)
	e.merge("kubectl-patch", obj, `{"data":{"color":"red"}}`)
	i := e.release(obj, "kubectl", nil, "kubectl-patch").prepared()
	e.merge("somebody", obj, `{"data":{"color":"green"}}`)
	fails(t, i.do(), errclass.Conflict, errclass.Drifted, ".data.color")
	assert.Equal(t, "green", value(t, i.now(), "data", "color"))
}

func TestAReleaseGoesOnAfterACrashAtAnyRequestOfTheHandOver(t *testing.T) {
	t.Parallel()
	for n := range 2 {
		for _, lost := range []bool{false, true} {
			e := newEnv(t)
			obj := e.create(settings)
			e.merge("kubectl-patch", obj, `{"data":{"color":"red"}}`)
			i := e.release(obj, "kubectl", nil, "kubectl-patch").prepared().done()
			if lost {
				i.wire.loseNth(n)
			} else {
				i.wire.refuseNth(n)
			}
			require.Error(t, i.handOver())
			i.wire.requests()
			i.handedOver()
			assert.Equal(t, []string{"kubectl Apply"}, managers(i.now()))
			assert.True(t, owns(i.now(), "kubectl", ".data.color"))
		}
	}
}

func TestThereMustBeSomethingToRelease(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(settings)
	e.merge("kubectl-patch", obj, `{"data":{"color":"red"}}`)
	for name, c := range map[string]struct {
		fields   []string
		managers []string
		says     string
	}{
		"no such manager":      {nil, []string{"kubectl-patch", "helm"}, "helm owns no such field"},
		"no such field":        {[]string{".data.color", ".data.size"}, []string{"kubectl-patch"}, "none of the managers owns .data.size"},
		"none of the fields":   {[]string{".data.color"}, []string{"kubectl-patch", "kubectl"}, "kubectl owns no such field"},
		"the manager of Janus": {nil, []string{mutate.DefaultManager}, "janus is a field manager of Janus"},
		"that of an item":      {nil, []string{"janus-0a1b2c3d-7"}, "is a field manager of Janus"},
	} {
		fails(t, e.release(obj, "", c.fields, c.managers...).tryPrepare(), errclass.Terminal, errclass.Invalid, c.says)
		assert.True(t, owns(e.live(obj), "kubectl-patch", ".data.color"), name)
	}
}

// Fields of another version of the kind cannot be looked up in the object.
func TestWhatWasWrittenByAnotherVersionIsReleasedByThat(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}")
	old := obj.DeepCopy()
	old.SetAPIVersion("autoscaling/v1")
	e.merge("kubectl-patch", old, `{"spec":{"maxReplicas":5}}`)
	fails(t, e.release(obj, "kubectl", nil, "kubectl-patch").tryPrepare(), errclass.Terminal, errclass.Invalid, "kubectl-patch owns no such field")
	e.release(old, "kubectl", nil, "kubectl-patch").prepared().done().handedOver()
	assert.NotContains(t, managers(e.live(obj)), "kubectl-patch Update")
	_, err := e.resource(obj).Apply(t.Context(), "web", parse(t, "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {maxReplicas: 4, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}"), metav1.ApplyOptions{FieldManager: "kubectl"})
	require.NoError(t, err)
}

// The content of a release is that of the object, and nothing of a Secret is told.
func TestAReleaseOfASecretTellsNothing(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create("{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {a: swordfish}}")
	e.merge("kubectl-patch", obj, `{"stringData":{"a":"tunafish"}}`)
	i := e.release(obj, "", nil, "kubectl-patch").prepared().done()
	i.handedOver()
	assert.NotContains(t, managers(i.now()), "kubectl-patch Update")
	err := e.release(obj, "", []string{`.data.tunafish`}, "kubectl").tryPrepare()
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "dHVuYWZpc2g")
}

// undoRelease plans and makes the change that undoes a release, and its own undo.
func (i *item) undoRelease(n int) *item {
	i.t.Helper()
	kept := i.record
	back := i.plan(n, api.Patch, "{apiVersion: "+i.object.GetAPIVersion()+", kind: "+i.object.GetKind()+", metadata: {name: "+i.object.GetName()+"}}")
	var err error
	var owners []metav1.ManagedFieldsEntry
	back.change, owners, _, err = back.change.Unrelease(i.t.Context(), mutate.Original{Record: kept}, i.now())
	require.NoError(i.t, err)
	back.owners.Former = func(context.Context) ([]metav1.ManagedFieldsEntry, *fieldmerge.Release, error) {
		return owners, back.change.Release, nil
	}
	back.record.Owners = owners
	return back.prepared().done()
}

// owned is who owns the fields of an object, without the times.
func owned(obj *unstructured.Unstructured) map[string][]string {
	out := map[string][]string{}
	for _, e := range entries(obj) {
		out[e.Manager+" "+e.Operation+" "+e.Subresource] = e.Fields
	}
	return out
}

func TestTheUndoOfAReleaseGivesFieldsBack(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"kubectl", ""} {
		t.Run("to "+to, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			obj := e.patched()
			before := owned(e.live(obj))
			i := e.release(obj, to, nil, "kubectl-patch", "kubectl-scale").prepared().done()
			i.handedOver()
			back := i.undoRelease(1)
			back.handedOver()
			assert.Equal(t, before, owned(i.now()))
			back.undoRelease(2).handedOver()
			for _, path := range []string{image, ".spec.replicas", ".metadata.annotations.note.x"} {
				assert.False(t, owns(i.now(), "kubectl-patch", path) || owns(i.now(), "kubectl-scale", path), "%s is released again", path)
			}
		})
	}
}

func TestWhatWasWrittenSinceItWasReleasedIsNotGivenBack(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(settings)
	e.merge("kubectl-patch", obj, `{"data":{"color":"red"}}`)
	i := e.release(obj, "kubectl", nil, "kubectl-patch").prepared().done()
	i.handedOver()
	e.apply("kubectl", settings)
	_, _, _, err := i.change.Unrelease(t.Context(), mutate.Original{Record: i.record}, i.now())
	fails(t, err, errclass.Conflict, errclass.FieldConflict, ".data.color of kubectl")
	_, _, _, err = i.change.Unrelease(t.Context(), mutate.Original{Record: i.record}, nil)
	fails(t, err, errclass.Conflict, errclass.NotFound, "deleted")
}
