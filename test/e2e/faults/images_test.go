package faults

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// images are what holds the before-images.
var images = []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"}}

// eachImage does something to every object that holds before-images.
func eachImage(ctx context.Context, r *run, do func(gvr schema.GroupVersionResource, image *unstructured.Unstructured) error) error {
	for _, gvr := range images {
		list, err := r.Dynamic.Resource(gvr).Namespace(r.at.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=janus"})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := do(gvr, &list.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

const noFinalizers = `{"metadata":{"finalizers":null}}`

// stripImages takes the finalizers off the before-images.
func stripImages(ctx context.Context, r *run, _ target) error {
	return eachImage(ctx, r, func(gvr schema.GroupVersionResource, image *unstructured.Unstructured) error {
		_, err := r.Dynamic.Resource(gvr).Namespace(r.at.namespace).
			Patch(ctx, image.GetName(), types.MergePatchType, []byte(noFinalizers), metav1.PatchOptions{FieldManager: somebody})
		return ignoreMissing(err)
	})
}

// deleteImages deletes the before-images, past their finalizers.
func deleteImages(ctx context.Context, r *run, of target) error {
	if err := stripImages(ctx, r, of); err != nil {
		return err
	}
	return eachImage(ctx, r, func(gvr schema.GroupVersionResource, image *unstructured.Unstructured) error {
		return ignoreMissing(r.Dynamic.Resource(gvr).Namespace(r.at.namespace).Delete(ctx, image.GetName(), metav1.DeleteOptions{}))
	})
}

// editImages puts others in place of the before-images, with another content: they
// are immutable.
func editImages(ctx context.Context, r *run, of target) error {
	if err := stripImages(ctx, r, of); err != nil {
		return err
	}
	return eachImage(ctx, r, func(gvr schema.GroupVersionResource, image *unstructured.Unstructured) error {
		client := r.Dynamic.Resource(gvr).Namespace(r.at.namespace)
		if err := client.Delete(ctx, image.GetName(), metav1.DeleteOptions{}); err != nil {
			return ignoreMissing(err)
		}
		forged := image.DeepCopy()
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "finalizers"} {
			unstructured.RemoveNestedField(forged.Object, "metadata", field)
		}
		data, _, _ := unstructured.NestedMap(forged.Object, "data")
		for key := range data {
			data[key] = "e30=" // JSON {} in a Secret, and no JSON in a ConfigMap
		}
		forged.Object["data"] = data
		_, err := client.Create(ctx, forged, metav1.CreateOptions{FieldManager: somebody})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}
