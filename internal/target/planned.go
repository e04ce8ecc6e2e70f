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
	versions := versionsOf(content)
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

// versionsOf are the versions of a CustomResourceDefinition; not to be changed.
func versionsOf(content map[string]any) []any {
	found, _, _ := unstructured.NestedFieldNoCopy(content, "spec", "versions")
	versions, _ := found.([]any)
	return versions
}

// Outline is what tells the kinds of a CustomResourceDefinition. The schemas, which are most of
// it, are left out.
func Outline(content map[string]any) map[string]any {
	found, _ := content["spec"].(map[string]any)
	if found == nil {
		return nil
	}
	spec := map[string]any{}
	for _, field := range []string{"group", "names", "scope"} {
		if value, there := found[field]; there {
			spec[field] = value
		}
	}
	if _, there := found["versions"]; there {
		versions := []any{}
		for _, v := range versionsOf(content) {
			entry, _ := v.(map[string]any)
			versions = append(versions, map[string]any{"name": entry["name"], "served": entry["served"]})
		}
		spec["versions"] = versions
	}
	return map[string]any{"spec": spec}
}

// Completed returns the outline of a change of a CustomResourceDefinition that is there with
// what it leaves out and cannot change of it: a Patch may name versions alone.
func Completed(content, live map[string]any) map[string]any {
	content, live = Outline(content), Outline(live)
	found, _ := content["spec"].(map[string]any)
	spec, _ := live["spec"].(map[string]any)
	versions, there := found["versions"]
	if !there || spec == nil {
		return content
	}
	spec["versions"] = versions
	return live
}

func findPlanned(planned []PlannedKind, gvk schema.GroupVersionKind) (PlannedKind, bool) {
	for _, p := range planned {
		if p.GVK == gvk {
			return p, true
		}
	}
	return PlannedKind{}, false
}
