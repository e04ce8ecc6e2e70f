package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/janustest"
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// The CRD is the whole cluster's, so this test runs before those that run side by
// side, and puts it back as it was.
func TestASpecThatIsChangedWhileItRunsIsRolledBack(t *testing.T) {
	t.Parallel()
	e := janustest.New(t)
	e.Apply(twoConfigMaps)
	first, second := e.Object("ConfigMap/app"), e.Object("ConfigMap/app-2")
	const cut = `{"spec":{"changes":[{"target":{"apiVersion":"v1","kind":"ConfigMap","name":"app"},"type":"Delete"}]}}`
	rules := setChangesRules(t, e, nil)
	t.Cleanup(func() {
		setChangesRules(t, e, rules)
		awaitSpecChange(t, e, "changed", strings.Replace(cut, "app", "another", 1), false)
	})
	e.Start(janustest.Acting(janustest.Around{Do: func(name string, item int) {
		if item == 1 {
			awaitSpecChange(t, e, name, cut, true)
		}
	}}))

	txn := e.Run("changed", twoPatches)

	ending{phase: api.PhaseRolledBack, reason: "SpecChanged", validated: metav1.ConditionTrue, says: []string{
		"the spec was changed after it was accepted (generation 2, accepted 1)", "create another Transaction instead"}}.check(t, e, txn)
	e.Same(first, "ConfigMap/app")
	e.Same(second, "ConfigMap/app-2")
	e.NothingLeft("changed")
}

// setChangesRules sets the rules that keep spec.changes as it is, and gives those that the CRD
// had.
func setChangesRules(t *testing.T, e *janustest.Env, rules any) any {
	t.Helper()
	ctx, client := context.Background(), e.Dynamic.Resource(crds)
	crd, err := client.Get(ctx, api.Resource.Resource+"."+api.Resource.Group, metav1.GetOptions{})
	require.NoError(t, err)
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	require.NoError(t, err)
	version, ok := versions[0].(map[string]any)
	require.True(t, ok)
	path := []string{"schema", "openAPIV3Schema", "x-kubernetes-validations"}
	had, _, err := unstructured.NestedFieldCopy(version, path...)
	require.NoError(t, err)
	unstructured.RemoveNestedField(version, path...)
	if rules != nil {
		require.NoError(t, unstructured.SetNestedField(version, rules, path...))
	}
	require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	_, err = client.Update(ctx, crd, metav1.UpdateOptions{})
	require.NoError(t, err)
	return had
}

// awaitSpecChange patches the spec of a Transaction until the API server lets it, or
// until it refuses to.
func awaitSpecChange(t *testing.T, e *janustest.Env, name, patch string, allowed bool) {
	t.Helper()
	options := metav1.PatchOptions{}
	if !allowed {
		options.DryRun = []string{metav1.DryRunAll}
	}
	assert.NoError(t, janustest.Poll(context.Background(), func(ctx context.Context) (bool, error) {
		_, err := e.Dynamic.Resource(api.Resource).Namespace(e.Namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), options)
		if err != nil && !apierrors.IsInvalid(err) {
			return false, err
		}
		return allowed == (err == nil), nil
	}))
}
