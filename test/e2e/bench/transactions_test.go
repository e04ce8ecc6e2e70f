package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
)

// manifest is a Transaction that applies some ConfigMaps, with more changes at the end.
func manifest(namespace, name string, first, last int, value, more string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: backup.janus.io/v1alpha1\nkind: Transaction\nmetadata: {name: %s, namespace: %s}\nspec:\n  serviceAccountName: %s\n  changes:\n", name, namespace, account)
	for i := first; i < last; i++ {
		fmt.Fprintf(&b, "  - {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: c-%d}, content: {data: {version: %q, size: small}}}\n", i, value)
	}
	return b.String() + more
}

// refused is a change that the API server refuses when it is made.
const refused = "  - {type: Create, target: {apiVersion: v1, kind: ConfigMap, name: refused-last}, content: {data: {a: b}}}\n"

// transact creates Transactions and waits until all have ended, as a watch shows.
func (s *stage) transact(ctx context.Context, namespace string, want api.Phase, manifests ...string) error {
	client := s.client.Dynamic.Resource(api.Resource).Namespace(namespace)
	var objects []*unstructured.Unstructured
	waiting := sets.New[string]()
	for _, text := range manifests {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
			return err
		}
		objects = append(objects, obj)
		waiting.Insert(obj.GetName())
	}
	list, err := client.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	seen, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer seen.Stop()
	for _, obj := range objects {
		if _, err := client.Create(ctx, obj, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for waiting.Len() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, ok := <-seen.ResultChan():
			if !ok || event.Type == watch.Error {
				return errors.New("the watch of Transactions has ended")
			}
			if err := ended(event.Object.(*unstructured.Unstructured), want, waiting); err != nil {
				return err
			}
		}
	}
	return nil
}

// ended takes a Transaction off those that are waited for if it is at its end.
func ended(txn *unstructured.Unstructured, want api.Phase, waiting sets.Set[string]) error {
	phase, _, _ := unstructured.NestedString(txn.Object, "status", "phase")
	if !api.Phase(phase).Terminal() {
		return nil
	}
	if api.Phase(phase) != want && waiting.Has(txn.GetName()) {
		return fmt.Errorf("the Transaction %s/%s is %s, not %s: %v", txn.GetNamespace(), txn.GetName(), phase, want, txn.Object["status"])
	}
	waiting.Delete(txn.GetName())
	return nil
}
