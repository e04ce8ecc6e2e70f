package fieldmerge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// flat returns every field of an object that has one value, with its path as
// fieldpath writes it. It knows the schema by the names of the fields. Whether what
// is in parts is there with nothing in it, or null, which structured-merge-diff makes
// of it, does not show.
func flat(object map[string]any) map[string]any {
	out := map[string]any{}
	flatten(out, "", "", object)
	return out
}

func flatten(out map[string]any, path, name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if name == "selector" {
			out[path] = v
			return
		}
		for key, inner := range v {
			flatten(out, path+"."+key, key, inner)
		}
	case []any:
		if name == "steps" || name == "list" || name == "z" {
			out[path] = v
		}
		for _, item := range v {
			if id := identityIn(name, item); id != "" {
				flatten(out, path+id, "", item)
			}
		}
	case nil:
		if name == "x" {
			out[path] = v
		}
	default:
		out[path] = v
	}
}

// identityIn is the path element of an item in a list of some name; none for a list
// that is one value.
func identityIn(list string, item any) string {
	switch list {
	case "finalizers", "tags":
		return fmt.Sprintf("[=%q]", item)
	case "parts", "env":
		return fmt.Sprintf("[name=%q]", item.(map[string]any)["name"])
	case "ports":
		port := item.(map[string]any)
		protocol, ok := port["protocol"]
		if !ok {
			protocol = "TCP"
		}
		return fmt.Sprintf("[port=%d,protocol=%q]", port["port"], protocol)
	default:
		return ""
	}
}

// lists returns the identities of every list whose items have one, in order.
func lists(object map[string]any) map[string][]string {
	out := map[string][]string{}
	var walk func(path, name string, v any)
	walk = func(path, name string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				walk(path+"."+key, key, inner)
			}
		case []any:
			for _, item := range v {
				if id := identityIn(name, item); id != "" {
					out[path] = append(out[path], id)
					walk(path+id, "", item)
				}
			}
		}
	}
	walk("", "", object)
	return out
}

// both leaves in a list what the other has too.
func both(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !slices.Contains(other, s) })
}

// within reports whether a path is another one or below it.
func within(path, above string) bool {
	return path == above || strings.HasPrefix(path, above+".") || strings.HasPrefix(path, above+"[")
}

func line(obj *unstructured.Unstructured) string {
	out, _ := json.Marshal(obj.Object)
	return string(out)
}

// wellFormed fails unless the schema accepts an object, without duplicates in keyed
// lists and sets.
func wellFormed(t *rapid.T, obj *unstructured.Unstructured) {
	if _, err := thingType.FromUnstructured(Strip(obj).Object); err != nil {
		t.Fatalf("%s: %v", line(obj), err)
	}
}

func pathsOf(set *fieldpath.Set) []string {
	var out []string
	set.Iterate(func(p fieldpath.Path) { out = append(out, p.String()) })
	return out
}
