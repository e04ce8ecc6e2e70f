package harness

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/mutate"
)

// ItemManagers lists the field managers of items that own something on an object.
func (e *Env) ItemManagers(ref string) []string {
	e.t.Helper()
	var out []string
	for _, manager := range e.Managers(ref) {
		if strings.HasPrefix(manager, mutate.DefaultManager+"-") {
			out = append(out, manager)
		}
	}
	return out
}

// Managers lists who has an entry in the managedFields of an object; nobody if it
// is gone.
func (e *Env) Managers(ref string) []string {
	e.t.Helper()
	obj := e.Object(ref)
	if obj == nil {
		return nil
	}
	var out []string
	for _, entry := range obj.GetManagedFields() {
		out = append(out, entry.Manager)
	}
	return out
}

// JanusManagers lists the managers of an object that are Janus'.
func JanusManagers(obj *unstructured.Unstructured) []string {
	var out []string
	for _, entry := range obj.GetManagedFields() {
		if strings.HasPrefix(entry.Manager, "janus") {
			out = append(out, entry.Manager)
		}
	}
	return out
}
