package simulation

import (
	"context"
	"encoding/base64"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// found returns one of the objects of a kind whose name has a part; nil if there is
// none.
func (a *actors) found(kind, part string) *unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range a.world.server.Objects() {
		if obj.GetKind() == kind && obj.GetNamespace() == namespace && strings.Contains(obj.GetName(), part) {
			out = append(out, obj)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out[a.world.random.IntN(len(out))].DeepCopy()
}

// stealLock takes a lock for a client that never heard of Transactions, for a few
// seconds or, in a record that says nothing of time, for as long as Janus gives it.
func (a *actors) stealLock() error {
	lease := a.found("Lease", "janus-lock")
	if lease == nil {
		return nil
	}
	spec := map[string]any{"holderIdentity": a.fresh("thief"), "leaseDurationSeconds": int64(20), "leaseTransitions": nil}
	if a.world.random.IntN(2) == 0 {
		spec = map[string]any{"holderIdentity": a.fresh("thief"), "leaseDurationSeconds": nil, "renewTime": nil, "acquireTime": nil, "leaseTransitions": nil}
	}
	return a.merge(lease, "thief", map[string]any{"spec": spec})
}

func (a *actors) deleteLock() error {
	if lease := a.found("Lease", "janus-lock"); lease != nil {
		return a.remove(lease)
	}
	return nil
}

// tamper replaces an object with before-images by one of other content, as a user
// may who can edit ConfigMaps and Secrets.
func (a *actors) tamper() error {
	kind := []string{"ConfigMap", "Secret"}[a.world.random.IntN(2)]
	obj := a.found(kind, "-rollback")
	if obj == nil {
		return nil
	}
	data, _, _ := unstructured.NestedStringMap(obj.Object, "data")
	for key, value := range data {
		if kind == "Secret" {
			plain, _ := base64.StdEncoding.DecodeString(value)
			data[key] = base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(string(plain), "old", "0ld")))
			continue
		}
		data[key] = strings.ReplaceAll(value, "old", "0ld")
	}
	_ = unstructured.SetNestedStringMap(obj.Object, data, "data")
	obj.SetResourceVersion("")
	obj.SetUID("")
	obj.SetManagedFields(nil)
	client := a.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(kind) + "s"}).Namespace(namespace)
	if err := a.merge(obj, "tamperer", map[string]any{"metadata": map[string]any{"finalizers": nil}}); err != nil {
		return err
	}
	if err := client.Delete(context.Background(), obj.GetName(), metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err := client.Create(context.Background(), obj, metav1.CreateOptions{})
	return err
}
