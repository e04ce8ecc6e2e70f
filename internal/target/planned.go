package target

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PlannedKind is a kind that a CRD among the changes of a Transaction defines, so
// that later changes may have targets of it before the cluster serves it.
type PlannedKind struct {
	GVK        schema.GroupVersionKind
	GVR        schema.GroupVersionResource
	Namespaced bool
}

// PlannedKinds reads the kinds, one per served version, out of the content of a
// change whose target is a CustomResourceDefinition. Content that is not a CRD,
// or too incomplete to tell, defines none.
func PlannedKinds(content map[string]any) []PlannedKind {
	group, _, _ := unstructured.NestedString(content, "spec", "group")
	kind, _, _ := unstructured.NestedString(content, "spec", "names", "kind")
	plural, _, _ := unstructured.NestedString(content, "spec", "names", "plural")
	scope, _, _ := unstructured.NestedString(content, "spec", "scope")
	versions, _, _ := unstructured.NestedSlice(content, "spec", "versions")
	if group == "" || kind == "" || plural == "" {
		return nil
	}
	var out []PlannedKind
	for _, v := range versions {
		entry, _ := v.(map[string]any)
		name, _ := entry["name"].(string)
		served, _ := entry["served"].(bool)
		if name == "" || !served {
			continue
		}
		gv := schema.GroupVersion{Group: group, Version: name}
		out = append(out, PlannedKind{GVK: gv.WithKind(kind), GVR: gv.WithResource(plural), Namespaced: scope == "Namespaced"})
	}
	return out
}

// Completed returns the content of a change of a CustomResourceDefinition that is there with
// what it leaves out and cannot change of it: a Patch may name versions alone.
func Completed(content, live map[string]any) map[string]any {
	versions, found, _ := unstructured.NestedSlice(content, "spec", "versions")
	spec, _, _ := unstructured.NestedMap(live, "spec")
	if !found || spec == nil {
		return content
	}
	spec["versions"] = versions
	return map[string]any{"spec": spec}
}

func findPlanned(planned []PlannedKind, gvk schema.GroupVersionKind) (PlannedKind, bool) {
	for _, p := range planned {
		if p.GVK == gvk {
			return p, true
		}
	}
	return PlannedKind{}, false
}
