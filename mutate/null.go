package mutate

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// setsNull reports whether the way from one object to another sets a null, also
// inside a list. A merge patch cannot: to it, null means absent.
func setsNull(from, to map[string]any) bool {
	for name, next := range to {
		old, there := from[name]
		if there && reflect.DeepEqual(old, next) {
			continue
		}
		oldMap, isMap := old.(map[string]any)
		nextMap, staysMap := next.(map[string]any)
		if isMap && staysMap {
			if setsNull(oldMap, nextMap) {
				return true
			}
		} else if hasNull(next) {
			return true
		}
	}
	return false
}

func hasNull(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, inner := range v {
			if hasNull(inner) {
				return true
			}
		}
	case []any:
		for _, inner := range v {
			if hasNull(inner) {
				return true
			}
		}
	}
	return false
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// replaceValues writes, with a JSON patch, every field of the top level and of the
// metadata that is not as wanted. The patch has no operation that can fail on an
// object which others have changed: like a merge patch it then gets as far as its
// resourceVersion, and is stale. (A test operation would give 422 instead.)
func (c Change) replaceValues(ctx context.Context, live, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(valueOperations(live, wanted))
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	return c.client().Patch(ctx, c.Ref.Name, types.JSONPatchType, body, c.patchOptions())
}

func valueOperations(live, wanted *unstructured.Unstructured) []operation {
	liveMeta, _ := live.Object["metadata"].(map[string]any)
	wantedMeta, _ := wanted.Object["metadata"].(map[string]any)
	patch := append(operations("/metadata/", liveMeta, wantedMeta),
		operation{"add", "/metadata/uid", string(live.GetUID())},
		operation{"add", "/metadata/resourceVersion", live.GetResourceVersion()})
	return append(patch, operations("/", without(live.Object, "metadata"), without(wanted.Object, "metadata"))...)
}

// operations set and remove fields whether they are there or not.
func operations(prefix string, from, to map[string]any) []operation {
	var out []operation
	for name, next := range to {
		if old, there := from[name]; !there || !reflect.DeepEqual(old, next) {
			out = append(out, operation{"add", prefix + escaped(name), next})
		}
	}
	for name := range from {
		if _, stays := to[name]; !stays {
			path := prefix + escaped(name)
			out = append(out, operation{"add", path, nil}, operation{"remove", path, nil})
		}
	}
	return out
}

// escaped is a name as a JSON pointer (RFC 6901) has it.
func escaped(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

func without(object map[string]any, name string) map[string]any {
	out := make(map[string]any, len(object))
	for key, v := range object {
		if key != name {
			out[key] = v
		}
	}
	return out
}
