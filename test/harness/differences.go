package harness

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
)

// Differences names the fields, and the owners, that differ between two states of an object
// in what a writer of it decides; its status, and since when a client other than the
// control plane owns something, are compared if asked for.
func Differences(was, is *unstructured.Unstructured, status, times bool) []string {
	if was == nil || is == nil {
		if was == is {
			return nil
		}
		return []string{map[bool]string{true: "it is there", false: "it is gone"}[was == nil]}
	}
	before, after := Settled(was), Settled(is)
	if status {
		before.Object["status"], after.Object["status"] = was.Object["status"], is.Object["status"]
	}
	for _, obj := range []*unstructured.Unstructured{before, after} {
		// The API server counts in it.
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", "deprecated.daemonset.template.generation")
		withoutItsTaints(obj)
	}
	out := differing("", before.Object, after.Object)
	had, has := ownersOf(was, times), ownersOf(is, times)
	for _, manager := range keysOf(had, has) {
		if had[manager] != has[manager] {
			out = append(out, "owner "+manager)
		}
	}
	return out
}

// withoutItsTaints leaves out the taints of a Node that the control plane sets, with the time.
func withoutItsTaints(obj *unstructured.Unstructured) {
	taints, found, _ := unstructured.NestedSlice(obj.Object, "spec", "taints")
	if obj.GetKind() != "Node" || !found {
		return
	}
	left := slices.DeleteFunc(taints, func(v any) bool {
		taint, _ := v.(map[string]any)
		return strings.HasPrefix(fmt.Sprint(taint["key"]), "node.kubernetes.io/")
	})
	unstructured.RemoveNestedField(obj.Object, "spec", "taints")
	if len(left) > 0 {
		_ = unstructured.SetNestedSlice(obj.Object, left, "spec", "taints")
	}
}

func differing(path string, was, is any) []string {
	before, wasObject := was.(map[string]any)
	after, isObject := is.(map[string]any)
	if !wasObject || !isObject {
		if reflect.DeepEqual(was, is) {
			return nil
		}
		return []string{path}
	}
	var out []string
	for _, key := range keysOf(before, after) {
		out = append(out, differing(path+"."+key, before[key], after[key])...)
	}
	return out
}

func keysOf[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// ownersOf returns what each manager owns, the status aside, and since when.
func ownersOf(obj *unstructured.Unstructured, times bool) map[string]string {
	out := map[string]string{}
	for _, entry := range owners(obj) {
		since := metav1.Time{}
		if times && entry.Time != nil && !fieldmerge.ControlPlane(entry.Manager) {
			since = *entry.Time
		}
		out[fmt.Sprintf("%s (%s, %s)", entry.Manager, entry.Operation, entry.APIVersion)] = fmt.Sprint(entry.FieldsV1.GetRawString(), since)
	}
	return out
}
