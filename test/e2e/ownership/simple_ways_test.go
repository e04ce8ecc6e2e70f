package ownership

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// The simple ways to undo a forced apply do damage. The scene of these tests:
// a Deployment that kubectl, a GitOps applier, an autoscaler and an annotator have
// written, a forced apply, and then three writes of others to other fields.

const sharedWeb = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'example.com/web:0', env: [{name: A, value: a}, {name: B, value: b}]}]}
`

const webHead = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: "

func webImage(tag string) string {
	return webHead + "{template: {spec: {containers: [{name: web, image: 'example.com/web:" + tag + "'}]}}}}"
}

const (
	// forcedImage and forcedRest are what is applied by force, in one apply.
	forcedImage = "image: 'example.com/web:2', "
	forcedRest  = "env: [{name: A, value: a2}]"
)

// forcedSpec is the spec of the forced apply.
func forcedSpec(fields ...string) string {
	return "{replicas: 3, template: {spec: {containers: [{name: web, " + strings.Join(fields, "") + "}]}}}"
}

// sharedScene makes the Deployment as four have written it.
func sharedScene(t *testing.T, e *harness.Env) *unstructured.Unstructured {
	t.Helper()
	kubectlApply(t, e, sharedWeb, "--server-side")
	// Who sets the first annotation owns the map of them, and would keep an entry for it.
	e.Until("the controller has numbered it", func() bool { return e.Object(webRef).GetAnnotations()["deployment.kubernetes.io/revision"] != "" })
	_, err := newOutsider(t, e, "gitops").apply(webImage("1"), true)
	require.NoError(t, err)
	o := newOutsider(t, e, "autoscaler")
	o.scale("5")
	e.Merge("annotator", webRef, `{"metadata":{"annotations":{"checked":"1"}}}`)
	return o.age(e.Object(webRef))
}

// unrelated are the writes of others to fields that the forced apply did not touch.
func unrelated(t *testing.T, e *harness.Env) {
	t.Helper()
	e.Merge("annotator", webRef, `{"metadata":{"annotations":{"checked":"2"}}}`)
	e.Merge("person", webRef, `{"metadata":{"labels":{"note":"x"}}}`)
	_, err := newOutsider(t, e, "meshd").apply(webHead+"{template: {spec: {containers: [{name: mesh, image: 'example.com/mesh:1'}]}}}}", false)
	require.NoError(t, err)
}

// unrelatedKept tells which of the writes of others are there.
func unrelatedKept(obj *unstructured.Unstructured) map[string]bool {
	containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
	return map[string]bool{
		"annotation": obj.GetAnnotations()["checked"] == "2", "label": obj.GetLabels()["note"] == "x", "sidecar": len(containers) == 2,
	}
}

// hasEntry tells whether a manager is named in managedFields.
func hasEntry(obj *unstructured.Unstructured, manager string) bool {
	return slices.ContainsFunc(managersOf(obj), func(m string) bool { return strings.HasPrefix(m, manager+" ") })
}

func TestTheSimpleWaysAreWrong(t *testing.T) {
	t.Run("an update to the before-image", func(t *testing.T) {
		e := harness.New(t)
		before := sharedScene(t, e)
		forcer := newOutsider(t, e, "forcer")
		_, err := forcer.apply(webHead+forcedSpec(forcedImage, forcedRest)+"}", true)
		require.NoError(t, err)
		unrelated(t, e)
		image := before.DeepCopy()
		image.SetManagedFields(nil)
		var now *unstructured.Unstructured
		e.Until("the update meets no write of the controller", func() bool {
			image.SetResourceVersion(e.Object(webRef).GetResourceVersion())
			now, err = forcer.put(image)
			return codeOf(err) != http.StatusConflict
		})
		require.NoError(t, err)
		assert.Equal(t, map[string]bool{"annotation": false, "label": false, "sidecar": false}, unrelatedKept(now), "reverted in silence")
		for _, manager := range []string{"autoscaler", "annotator", "person"} {
			assert.False(t, hasEntry(now, manager), "%s is an owner no more: %v", manager, managersOf(now))
		}
		_, err = newOutsider(t, e, "gitops").apply(webImage("3"), false)
		assert.Equal(t, http.StatusConflict, codeOf(err))
		require.ErrorContains(t, err, "forcer")
	})
	t.Run("an empty apply", func(t *testing.T) {
		e := harness.New(t)
		sharedScene(t, e)
		forcer := newOutsider(t, e, "forcer")
		obj, err := forcer.apply(webHead+forcedSpec(forcedImage, forcedRest)+"}", true)
		require.NoError(t, err)
		_, err = forcer.applyObject(named(obj), true)
		assert.Equal(t, http.StatusUnprocessableEntity, codeOf(err), "the image is required: %v", err)
		_, err = newOutsider(t, e, "gitops").apply(webImage("1"), true)
		require.NoError(t, err)
		now, err := forcer.applyObject(named(obj), true)
		require.NoError(t, err)
		assert.Equal(t, int64(1), field(t, now, "spec", "replicas"), "the default")
		assert.Nil(t, variable(now, "A")["value"], "the value is gone")
	})
	t.Run("an apply of the old values", func(t *testing.T) {
		e := harness.New(t)
		sharedScene(t, e)
		service := newOutsider(t, e, "owner").make(nodePorts)
		forcer := newOutsider(t, e, "forcer")
		_, err := forcer.apply(webHead+forcedSpec(forcedRest)+"}", true)
		require.NoError(t, err)
		_, err = forcer.apply(clusterIP, true)
		require.NoError(t, err)
		newOutsider(t, e, "person").patch(e.Object(webRef), types.JSONPatchType, removeA)
		now, err := forcer.apply(webHead+"{replicas: 5, template: {spec: {containers: [{name: web, env: [{name: A, value: a}]}]}}}}", false)
		require.NoError(t, err)
		assert.NotNil(t, variable(now, "A"), "what the person has removed is there again")
		assert.False(t, hasEntry(now, "autoscaler"), "the replicas are not the autoscaler's: %v", managersOf(now))
		assert.True(t, hasEntry(now, "forcer"))
		ports, err := forcer.apply(strings.Replace(clusterIP, "ClusterIP", "NodePort", 1), false)
		require.NoError(t, err)
		assert.NotEqual(t, nodePort(service), nodePort(ports), "another port was allocated")
	})
}

const (
	nodePorts = "{apiVersion: v1, kind: Service, metadata: {name: ports}, spec: {type: NodePort, ports: [{port: 80}]}}"
	clusterIP = "{apiVersion: v1, kind: Service, metadata: {name: ports}, spec: {type: ClusterIP}}"
	removeA   = `[{"op":"test","path":"/spec/template/spec/containers/0/env/0/name","value":"A"},{"op":"remove","path":"/spec/template/spec/containers/0/env/0"}]`
)

func nodePort(service *unstructured.Unstructured) any {
	return deep(service.Object, "spec", "ports", "0", "nodePort")
}

// variable returns an environment variable of the first container; nil if there is
// none.
func variable(obj *unstructured.Unstructured, name string) map[string]any {
	list, _ := deep(obj.Object, "spec", "template", "spec", "containers", "0", "env").([]any)
	for _, v := range list {
		if variable, _ := v.(map[string]any); variable["name"] == name {
			return variable
		}
	}
	return nil
}

// forcedPatch is the forced apply as changes of a Transaction; the last of them is
// refused when it is made.
var forcedPatch = `
changes:
  - {target: {apiVersion: apps/v1, kind: Deployment, name: web}, type: Patch, content: {spec: ` + forcedSpec(forcedImage, forcedRest) + `}}
  - {target: {apiVersion: v1, kind: Service, name: ports}, type: Patch, content: {spec: {type: ClusterIP}}}` + fixture.CreateLate

// undoingWith runs forcedPatch, and does something between its commit and rollback.
func undoingWith(e *harness.Env, act func()) *api.Transaction {
	doing := harness.Once(func(*api.Transaction) bool { return true }, act)
	e.Start(harness.Acting(harness.Around{
		Do: func(_ string, item int) {
			if item == 2 {
				e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: late}}")
			}
		},
		Undo: func(string, int) { doing(nil) },
	}))
	return e.Run("txn", forcedPatch)
}

func TestJanusDoesNoneOfTheDamageOfTheSimpleWays(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	before := sharedScene(t, e)
	service := newOutsider(t, e, "owner").make(nodePorts)

	txn := undoingWith(e, func() { unrelated(t, e) })

	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	now := e.Object(webRef)
	assert.Equal(t, map[string]bool{"annotation": true, "label": true, "sidecar": true}, unrelatedKept(now))
	assert.Equal(t, int64(5), field(t, now, "spec", "replicas"))
	assert.Equal(t, "a", variable(now, "A")["value"])
	assert.Equal(t, append(managersOf(before), "meshd Apply", "person Update"), managersOf(now))
	e.Same(service, "Service/ports")
	assert.Equal(t, nodePort(service), nodePort(e.Object("Service/ports")))
	applied, err := newOutsider(t, e, "gitops").apply(webImage("3"), false)
	require.NoError(t, err, "the next apply of the GitOps applier")
	assert.Equal(t, "example.com/web:3", deep(applied.Object, "spec", "template", "spec", "containers", "0", "image"))
	assert.Equal(t, int64(6), field(t, newOutsider(t, e, "autoscaler").scale("6"), "spec", "replicas"))
	assert.Contains(t, managersOf(e.Object(webRef)), "autoscaler Update scale")
}

func TestJanusDoesNotAddAgainWhatSomebodyHasRemoved(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	sharedScene(t, e)
	newOutsider(t, e, "owner").make(nodePorts)

	txn := undoingWith(e, func() { newOutsider(t, e, "person").patch(e.Object(webRef), types.JSONPatchType, removeA) })

	require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.FieldConflict, txn.Status.Items[0].Reason)
	require.Len(t, txn.Status.Items[0].Conflicts, 1, harness.Describe(txn))
	assert.Equal(t, `.spec.template.spec.containers[name="web"].env[name="A"].value`, txn.Status.Items[0].Conflicts[0].Field)
	now := e.Object(webRef)
	assert.Nil(t, variable(now, "A"))
	assert.Equal(t, "example.com/web:1", deep(now.Object, "spec", "template", "spec", "containers", "0", "image"), "the rest is rolled back")
	assert.Equal(t, int64(5), field(t, now, "spec", "replicas"))
}
