package input

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// The CRD is the whole cluster's, so this test has a cluster of its own.
func TestASpecThatIsChangedWhileItRunsIsRolledBack(t *testing.T) {
	t.Parallel()
	cluster, err := testcluster.Start(testcluster.Options{ControllerManager: true, CRDs: "../../../deploy/crd"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Stop()) })
	e := harness.On(t, cluster)
	e.Apply(fixture.TwoConfigMaps)
	first, second := e.Object("ConfigMap/app"), e.Object("ConfigMap/app-2")
	const cut = `{"spec":{"changes":[{"target":{"apiVersion":"v1","kind":"ConfigMap","name":"app"},"type":"Delete"}]}}`
	dropChangesRules(t, e)
	e.Start(harness.Acting(harness.Around{Do: func(name string, item int) {
		if item == 1 {
			changeSpec(t, e, name, cut)
		}
	}}))

	txn := e.Run("changed", fixture.TwoPatches)

	harness.Ending{Phase: api.PhaseRolledBack, Reason: "SpecChanged", Validated: metav1.ConditionTrue, Says: []string{
		"the spec was changed after it was accepted (generation 2, accepted 1)", "create another Transaction instead"}}.Check(t, e, txn)
	e.Same(first, "ConfigMap/app")
	e.Same(second, "ConfigMap/app-2")
	e.NothingLeft("changed")
}

// dropChangesRules takes away the rules that keep spec.changes as it is.
func dropChangesRules(t *testing.T, e *harness.Env) {
	t.Helper()
	client := e.Dynamic.Resource(crds)
	crd, err := client.Get(t.Context(), api.Resource.Resource+"."+api.Resource.Group, metav1.GetOptions{})
	require.NoError(t, err)
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	require.NoError(t, err)
	for _, v := range versions {
		version, ok := v.(map[string]any)
		require.True(t, ok)
		unstructured.RemoveNestedField(version, "schema", "openAPIV3Schema", "x-kubernetes-validations")
	}
	require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	_, err = client.Update(t.Context(), crd, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// changeSpec patches the spec of a Transaction until the API server lets it.
func changeSpec(t *testing.T, e *harness.Env, name, patch string) {
	t.Helper()
	assert.NoError(t, harness.Poll(t.Context(), func(ctx context.Context) (bool, error) {
		_, err := e.Dynamic.Resource(api.Resource).Namespace(e.Namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil && !apierrors.IsInvalid(err) {
			return false, err
		}
		return err == nil, nil
	}))
}
