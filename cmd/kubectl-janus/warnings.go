package main

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
)

// The annotations by which other tools tell when they make an object, and when they delete it.
const (
	helmHook = "helm.sh/hook"
	argoHook = "argocd.argoproj.io/hook"
)

var jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}

// warningsOf says what of a manifest will not be as with the tool that it was written for, or not
// work at all. live is the object as it is; nil for one that is not there.
func warningsOf(manifest, live *unstructured.Unstructured, t api.Target) []string {
	var out []string
	for _, one := range []struct{ annotation, tool string }{{helmHook, "Helm"}, {argoHook, "Argo CD"}} {
		if when := manifest.GetAnnotations()[one.annotation]; when != "" {
			out = append(out, fmt.Sprintf("%s is a hook of %s (%s): Janus makes it like any other object and never deletes it, so leave it out if it is not wanted", t.String(), one.tool, when))
		}
	}
	if live == nil {
		return out
	}
	if manifest.GroupVersionKind().GroupKind() == jobKind && !within(manifest.Object, live.Object, "spec", "template") {
		out = append(out, t.String()+" exists, and the template of a Job cannot be changed: give the Job another name, or delete the old one before")
	}
	if gone := dropped(manifest, live); len(gone) > 0 {
		out = append(out, fmt.Sprintf("%s keeps %s, which kubectl apply had set and the manifest no longer has: Janus removes no field that a manifest leaves out", t.String(), few(gone)))
	}
	return out
}

// within reports whether all that a manifest says at a path is what the object has there.
func within(manifest, live map[string]any, path ...string) bool {
	says, there, _ := unstructured.NestedFieldNoCopy(manifest, path...)
	has, _, _ := unstructured.NestedFieldNoCopy(live, path...)
	return !there || contained(says, has)
}

// contained reports whether a value has all of another one: what the API server has added to it
// does not count.
func contained(part, whole any) bool {
	switch part := part.(type) {
	case map[string]any:
		fields, ok := whole.(map[string]any)
		for name, value := range part {
			ok = ok && contained(value, fields[name])
		}
		return ok || len(part) == 0 && whole == nil
	case []any:
		list, ok := whole.([]any)
		ok = ok && len(part) == len(list)
		for i := range part {
			ok = ok && contained(part[i], list[i])
		}
		return ok || len(part) == 0 && whole == nil
	default:
		return fmt.Sprint(part) == fmt.Sprint(whole) || sameQuantity(part, whole)
	}
}

// sameQuantity reports whether two values are the same quantity, such as 1000m and 1: the API
// server stores the shorter one.
func sameQuantity(a, b any) bool {
	one, err := resource.ParseQuantity(fmt.Sprint(a))
	if err != nil {
		return false
	}
	other, err := resource.ParseQuantity(fmt.Sprint(b))
	return err == nil && one.Cmp(other) == 0
}

// dropped are the fields that kubectl apply would remove: those that it has applied last, that
// the object still has, and that the manifest has no more. Elements of lists are not looked at.
func dropped(manifest, live *unstructured.Unstructured) []string {
	var last map[string]any
	if json.Unmarshal([]byte(live.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), &last) != nil {
		return nil
	}
	var out []string
	var look func(path string, was, is, has map[string]any)
	look = func(path string, was, is, has map[string]any) {
		for name, old := range was {
			at := path + "." + name
			next, stays := is[name]
			there, exists := has[name]
			inner, isMap := old.(map[string]any)
			switch {
			case !exists || at == ".metadata.namespace":
			case isMap:
				next, _ := next.(map[string]any)
				there, _ := there.(map[string]any)
				look(at, inner, next, there)
			case !stays:
				out = append(out, at)
			}
		}
	}
	look("", last, manifest.Object, live.Object)
	slices.Sort(out)
	return out
}

// few names the first of many.
func few(names []string) string {
	const most = 8
	if len(names) <= most {
		return some(names, 0)
	}
	return some(names[:most], int64(len(names)-most))
}

// unpruned warns of objects of a set that its manifests no longer have.
func unpruned(gone []api.Change) []string {
	if len(gone) == 0 {
		return nil
	}
	var names []string
	for _, c := range gone {
		names = append(names, c.Target.String())
	}
	return []string{few(names) + ": what the set has and the manifests no longer have stays, unless --prune is set"}
}

// warn prints warnings as kubectl does.
func (s *session) warn(warnings []string) {
	for _, text := range warnings {
		s.say("Warning: %s.", text)
	}
}
