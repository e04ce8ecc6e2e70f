package deploy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
)

const asJanusd = "--as=system:serviceaccount:janus-system:janusd"

// TestOnlyJanusdWritesTheStatus is about those whom RBAC would let do it.
func TestOnlyJanusdWritesTheStatus(t *testing.T) {
	s := newScene(t)
	txn := transaction("default")
	txn.SetGenerateName("")
	txn.SetName("release")
	require.NoError(t, s.create(api.Resource, txn, metav1.CreateOptions{}))
	client := s.admin.Resource(api.Resource).Namespace(s.Namespace)
	require.Eventually(t, func() bool {
		_, err := client.Patch(t.Context(), "release", types.MergePatchType, []byte(`{"status":{"version":1}}`),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
		return err != nil
	}, settle, 5*poll, "the policy is enforced")
	forged := []byte(`{"status":{"phase":"Committed"}}`)

	for name, client := range map[string]dynamic.Interface{"an administrator of the namespace": s.admin, "one of the cluster": s.in.dynamic} {
		txns := client.Resource(api.Resource).Namespace(s.Namespace)
		_, err := txns.Patch(t.Context(), "release", types.MergePatchType, forged, metav1.PatchOptions{}, "status")
		s.refused(err, "status", "may not write the status of Transaction "+s.Namespace+"/release: janusd alone does", asJanusd)
		_, err = txns.Apply(t.Context(), "release", &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": txn.GetAPIVersion(), "kind": txn.GetKind(), "metadata": map[string]any{"name": "release"},
			"status": map[string]any{"phase": "Committed"},
		}}, metav1.ApplyOptions{FieldManager: "forger", Force: true}, "status")
		s.refused(err, "status")
		_, err = txns.Patch(t.Context(), "release", types.MergePatchType, []byte(`{"status":{"phase":"Committed"},"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
		require.NoError(t, err, "%s may label it", name)
	}
	found, err := s.in.dynamic.Resource(api.Resource).Namespace(s.Namespace).Get(t.Context(), "release", metav1.GetOptions{})
	require.NoError(t, err)
	phase, _, _ := unstructured.NestedString(found.Object, "status", "phase")
	require.Empty(t, phase, "a write of the whole object leaves the status alone")

	// The way out that the message names.
	require.NoError(t, unstructured.SetNestedField(found.Object, "Pending", "status", "phase"))
	_, err = s.in.as(t, janusd.User).Resource(api.Resource).Namespace(s.Namespace).UpdateStatus(t.Context(), found, metav1.UpdateOptions{})
	require.NoError(t, err)
}
