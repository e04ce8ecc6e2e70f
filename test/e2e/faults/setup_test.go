package faults

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/oracle"
)

// target is what a change is about.
type target struct {
	oracle.Ref
	kind schema.GroupVersionKind
}

// setUp makes the objects of the workload and its Transaction, which is not
// submitted yet.
func (r *run) setUp() error {
	objects, err := decode[[]map[string]any](r.Objects, r.at)
	if err != nil {
		return err
	}
	uids := map[string]string{}
	for _, content := range objects {
		obj := &unstructured.Unstructured{Object: content}
		made, err := r.make(obj, uids)
		if err != nil {
			return fmt.Errorf("make %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		uids["UID:"+made.GetKind()+"/"+made.GetName()] = string(made.GetUID())
	}
	if r.Controller {
		if err := harness.Poll(r.ctx, r.controlled(objects)); err != nil {
			return err
		}
	}
	if err := r.guard(); err != nil {
		return err
	}
	if err := r.commitEarlier(); err != nil {
		return err
	}
	if r.plan.cancels() {
		r.OnDelete = string(api.DeleteRollback)
	}
	if r.txns, err = r.transactions(r.at); err != nil {
		return err
	}
	return r.findTargets()
}

// make makes one object, with its status if it has one.
func (r *run) make(obj *unstructured.Unstructured, uids map[string]string) (*unstructured.Unstructured, error) {
	owners := obj.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = orKeep(uids, owners[i].UID)
	}
	if len(owners) > 0 {
		obj.SetOwnerReferences(owners)
	}
	client, err := r.client(obj.GroupVersionKind(), obj.GetNamespace())
	if err != nil {
		return nil, err
	}
	status, hasStatus := obj.Object["status"]
	delete(obj.Object, "status")
	made, err := client.Create(r.ctx, obj, metav1.CreateOptions{FieldManager: harness.Manager})
	if err != nil {
		return nil, err
	}
	if r.since == 0 {
		if r.since, err = revision(made.GetResourceVersion()); err != nil {
			return nil, err
		}
	}
	if hasStatus {
		made.Object["status"] = status
		return client.UpdateStatus(r.ctx, made, metav1.UpdateOptions{FieldManager: "controller"})
	}
	return made, nil
}

func orKeep[T ~string](known map[string]string, key T) T {
	if value, ok := known[string(key)]; ok {
		return T(value)
	}
	return key
}

// client returns the interface to a kind in a namespace, that of the run by default.
func (r *run) client(kind schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	if namespace == "" {
		namespace = r.at.namespace
	}
	return r.For(kind, namespace)
}

// controlled checks whether the Deployment controller is done with the objects.
func (r *run) controlled(objects []map[string]any) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		for _, content := range objects {
			obj := &unstructured.Unstructured{Object: content}
			if obj.GetKind() != "Deployment" {
				continue
			}
			live, err := r.Kube.AppsV1().Deployments(r.at.namespace).Get(ctx, obj.GetName(), metav1.GetOptions{})
			if err != nil || live.Status.ObservedGeneration != live.Generation || len(live.Status.Conditions) < 2 {
				return false, err
			}
		}
		return true, nil
	}
}

// findTargets lists what the changes are about, each object once.
func (r *run) findTargets() error {
	var changes []any
	for _, txn := range r.txns {
		list, _, err := unstructured.NestedSlice(txn.Object, "spec", "changes")
		if err != nil {
			return err
		}
		changes = append(changes, list...)
	}
	if r.Undoes {
		list, err := decode[[]any](r.changed(), r.at)
		if err != nil {
			return err
		}
		changes = list
	}
	seen := map[oracle.Ref]bool{}
	for _, change := range changes {
		t := change.(map[string]any)["target"].(map[string]any)
		text := func(key string) string { s, _ := t[key].(string); return s }
		kind := schema.FromAPIVersionAndKind(text("apiVersion"), text("kind"))
		ref := oracle.Ref{Resource: resourceOf(kind), Namespace: text("namespace"), Name: text("name")}
		if ref.Namespace == "" && !clusterScoped[kind.Kind] {
			ref.Namespace = r.at.namespace
		}
		if !seen[ref] {
			seen[ref] = true
			r.targets = append(r.targets, target{ref, kind})
		}
	}
	return nil
}

var clusterScoped = map[string]bool{"ClusterRole": true, "Namespace": true, "CustomResourceDefinition": true}

// resourceOf is the resource of a kind, by the rule that all kinds of the workloads keep.
func resourceOf(kind schema.GroupVersionKind) string {
	resource := strings.ToLower(kind.Kind) + "s"
	return schema.GroupResource{Group: kind.Group, Resource: resource}.String()
}

// read reads a target; nil if it does not exist.
func (r *run) read(ctx context.Context, t target) (*unstructured.Unstructured, error) {
	if strings.Contains(t.kind.Group, r.at.run) {
		return nil, nil // the kind comes and goes with the run
	}
	client, err := r.client(t.kind, t.Namespace)
	if err != nil {
		return nil, err
	}
	live, err := client.Get(ctx, t.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}
