package snapshot

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// K7, K9: what was deleted can be created again from what ForCreate gives.
func TestServerTakesWhatForCreateGives(t *testing.T) {
	t.Parallel()
	container := []any{map[string]any{"name": "a", "image": "example.com/a:1"}}
	cases := map[string]struct {
		resource schema.GroupVersionResource
		kind     string
		spec     map[string]any
	}{
		"Job": {schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, "Job", map[string]any{
			"suspend": true, "template": map[string]any{"spec": map[string]any{"restartPolicy": "Never", "containers": container}}}},
		"Pod": {schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "Pod", map[string]any{
			"containers": container}},
		"Service": {schema.GroupVersionResource{Version: "v1", Resource: "services"}, "Service", map[string]any{
			"type": "NodePort", "ports": []any{map[string]any{"port": int64(80)}}}},
		"PersistentVolumeClaim": {schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, "PersistentVolumeClaim", map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			client := f.dynamic.Resource(c.resource).Namespace(f.owner.Namespace)
			obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "spec": c.spec}}
			obj.SetGroupVersionKind(c.resource.GroupVersion().WithKind(c.kind))
			if _, err := client.Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			before, err := client.Get(t.Context(), "a", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			now, background := int64(0), metav1.DeletePropagationBackground
			if err := client.Delete(t.Context(), "a", metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &background}); err != nil {
				t.Fatal(err)
			}
			f.within(func(ctx context.Context) error {
				_, err := client.Create(ctx, ForCreate(before), metav1.CreateOptions{})
				if err != nil && !apierrors.IsAlreadyExists(err) { // still being deleted
					t.Fatal(err)
				}
				return err
			})
		})
	}
}

// A Pod loses what it has got with its Node, and keeps the Node that a client has named.
func TestWhatAPodHasFromItsNode(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	pods := f.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(f.owner.Namespace)
	node := "node-" + f.owner.Namespace
	create := func(name string, labels, spec map[string]any) {
		t.Helper()
		spec["containers"] = []any{map[string]any{"name": "a", "image": "example.com/a:1"}}
		pod := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "labels": labels}, "spec": spec,
		}}
		_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{FieldManager: "someone"})
		require.NoError(t, err)
	}
	_, err := f.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": node, "labels": map[string]any{corev1.LabelTopologyZone: "zone-7"}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	// The test binds it in place of a scheduler.
	create("bound", map[string]any{"app": "a"}, map[string]any{"schedulerName": "none"})
	_, err = pods.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Binding", "metadata": map[string]any{"name": "bound"}, "target": map[string]any{"apiVersion": "v1", "kind": "Node", "name": node},
	}}, metav1.CreateOptions{}, "binding")
	require.NoError(t, err)
	create("placed", map[string]any{"app": "a"}, map[string]any{"nodeName": node})

	bound, err := pods.Get(t.Context(), "bound", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"app": "a", corev1.LabelTopologyZone: "zone-7"}, bound.GetLabels(), "admission copies a label")
	again := ForCreate(bound)
	assert.Equal(t, map[string]string{"app": "a"}, again.GetLabels())
	_, placed, _ := unstructured.NestedString(again.Object, "spec", "nodeName")
	assert.False(t, placed)

	named, err := pods.Get(t.Context(), "placed", metav1.GetOptions{})
	require.NoError(t, err)
	at, _, _ := unstructured.NestedString(ForCreate(named).Object, "spec", "nodeName")
	assert.Equal(t, node, at)
}
