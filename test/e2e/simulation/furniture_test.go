package simulation

import (
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/test/apisim"
)

// furniture is what is there before the first Transaction: the ServiceAccount and
// the objects of the scenario, each written by two managers.
func furniture(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	out := []*unstructured.Unstructured{made((&actors{}).account())}
	for _, obj := range objects {
		out = append(out, made(obj))
	}
	return out
}

// stocked are objects as a server has stored them, by how they were written. Every
// run begins at the same time, and so they are the same in all of them.
var stocked sync.Map // string → *unstructured.Unstructured

// made returns an object as a server stores it. It must not be changed.
func made(obj *unstructured.Unstructured) *unstructured.Unstructured {
	written, err := json.Marshal(obj.Object)
	if err != nil {
		panic(err) // maps of text
	}
	if found, ok := stocked.Load(string(written)); ok {
		return found.(*unstructured.Unstructured)
	}
	stored, err := makeOnce(obj)
	if err != nil {
		panic(fmt.Sprintf("make %s %s: %v", obj.GetKind(), obj.GetName(), err))
	}
	stocked.Store(string(written), stored)
	return stored
}

// makeOnce has an object made by one manager and changed by another.
func makeOnce(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	server := apisim.New(apisim.Options{CRDs: kinds(), Namespaces: []string{namespace}})
	a := &actors{client: clientOf(server)}
	plain := obj.DeepCopy()
	delete(plain.Object, "status")
	if err := a.apply(plain, "kubectl"); err != nil {
		return nil, err
	}
	if status := obj.Object["status"]; status != nil {
		if err := a.merge(obj, "operator", map[string]any{"status": status}, "status"); err != nil {
			return nil, err
		}
	}
	if err := a.annotate(obj, "annotator", "checked", "yes"); err != nil {
		return nil, err
	}
	return server.Get(resourceOf(obj.GroupVersionKind()), namespace, obj.GetName()), nil
}
