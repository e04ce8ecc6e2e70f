package apisim

import (
	"maps"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// metadata returns the metadata of an object, nil if there is none. It must not be
// written to unless the object is known to be the caller's own.
func metadata(obj content) content {
	m, _ := obj["metadata"].(content)
	return m
}

// ownMetadata makes the metadata of an object one that the caller may write to.
func ownMetadata(obj content) content {
	m := maps.Clone(metadata(obj))
	if m == nil {
		m = content{}
	}
	obj["metadata"] = m
	return m
}

func text(m content, key string) string {
	s, _ := m[key].(string)
	return s
}

func nameOf(obj content) string      { return text(metadata(obj), "name") }
func namespaceOf(obj content) string { return text(metadata(obj), "namespace") }
func uidOf(obj content) string       { return text(metadata(obj), "uid") }
func versionOf(obj content) string   { return text(metadata(obj), "resourceVersion") }

func deleting(obj content) bool { return metadata(obj)["deletionTimestamp"] != nil }

func generationOf(obj content) int64 {
	n, _ := metadata(obj)["generation"].(int64)
	return n
}

func finalizersOf(obj content) []string {
	list, _ := metadata(obj)["finalizers"].([]any)
	out := make([]string, 0, len(list))
	for _, f := range list {
		s, _ := f.(string)
		out = append(out, s)
	}
	return out
}

// setOrDrop sets a field, or removes it if the other object does not have it.
func setOrDrop(to content, key string, from content) {
	if v, ok := from[key]; ok {
		to[key] = v
	} else {
		delete(to, key)
	}
}

func setFinalizers(m content, list []string) {
	if len(list) == 0 {
		delete(m, "finalizers")
		return
	}
	out := make([]any, len(list))
	for i, f := range list {
		out[i] = f
	}
	m["finalizers"] = out
}

// accessor returns the metadata by the names of the API machinery.
func accessor(obj content) metav1.Object { return &unstructured.Unstructured{Object: obj} }

// parseVersion reads a resourceVersion; zero for none.
func parseVersion(s string) (uint64, error) {
	if s == "" || s == "0" {
		return 0, nil
	}
	return strconv.ParseUint(s, 10, 64)
}

// equal compares two objects in the form of JSON.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	default:
		return a == b
	}
}

// equalExcept compares two maps without some of their keys.
func equalExcept(a, b content, keys ...string) bool {
	skipped := func(k string) bool {
		for _, key := range keys {
			if k == key {
				return true
			}
		}
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !skipped(k) && (!ok || !equal(v, w)) {
			return false
		}
	}
	for k := range b {
		if _, ok := a[k]; !skipped(k) && !ok {
			return false
		}
	}
	return true
}
