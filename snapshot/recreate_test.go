package snapshot

import (
	"context"
	"testing"

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
