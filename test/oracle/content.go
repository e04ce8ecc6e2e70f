package oracle

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// serverSet are the fields of metadata that the API server sets by itself.
var serverSet = map[string]bool{
	"creationTimestamp": true, "deletionGracePeriodSeconds": true, "deletionTimestamp": true, "generation": true,
	"managedFields": true, "resourceVersion": true, "selfLink": true, "uid": true,
}

// controllers' are annotations that controllers write at any time.
var controllersOwn = map[string]bool{"deployment.kubernetes.io/revision": true}

// content is what a writer of an object decides: all but what the server sets, the
// status, and what controllers write at any time.
func (v *version) content() map[string]any {
	if v == nil {
		return nil
	}
	if v.plain != nil {
		return v.plain
	}
	out := make(map[string]any, len(v.Object.Object))
	for name, value := range v.Object.Object {
		switch name {
		case "apiVersion", "kind", "status":
		case "metadata":
			if meta, ok := value.(map[string]any); ok {
				out[name] = metaOf(meta)
			}
		default:
			out[name] = value
		}
	}
	v.plain = out
	return out
}

func metaOf(meta map[string]any) map[string]any {
	out := make(map[string]any, len(meta))
	for name, value := range meta {
		if serverSet[name] {
			continue
		}
		if annotations, ok := value.(map[string]any); ok && name == "annotations" {
			kept := make(map[string]any, len(annotations))
			for key, text := range annotations {
				if !controllersOwn[key] {
					kept[key] = text
				}
			}
			if len(kept) == 0 {
				continue
			}
			value = kept
		}
		out[name] = value
	}
	return out
}

// merged is content with keyed lists made objects, so that what several have written
// can be told apart. Nothing that is empty is in it: who made an object that all have
// left cannot be told.
func (c *trial) merged(v *version) map[string]any {
	if v == nil {
		return nil
	}
	if v.compared == nil {
		v.compared, _ = c.parts("", v.content()).(map[string]any)
		if v.compared == nil {
			v.compared = map[string]any{}
		}
	}
	return v.compared
}

// parts takes a value apart. Empty values are nil.
func (c *trial) parts(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			if part := c.parts(key, inner); part != nil {
				out[key] = part
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		if ids := c.identities(name, v); ids != nil {
			return c.keyed(v, ids)
		}
		return v
	default:
		return v
	}
}

func encoded(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatInt(int64(v), 10)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// change is a leaf that differs: a value, or a list that is one.
type change struct {
	path     []string
	was, now any // nil for none
}

func (c change) String() string { return dotted(c.path) }

// dotted writes a path as the API server does: .spec.containers[name="a"].image.
func dotted(path []string) string {
	var out strings.Builder
	for _, name := range path {
		if !strings.HasPrefix(name, "[") {
			out.WriteByte('.')
		}
		out.WriteString(name)
	}
	return out.String()
}

// differences lists the leaves in which two contents differ.
func differences(was, now map[string]any) []change {
	var out []change
	differ(&out, nil, was, now)
	return out
}

func differ(out *[]change, path []string, was, now any) {
	wasMap, isMap := was.(map[string]any)
	nowMap, staysMap := now.(map[string]any)
	switch {
	case was == nil && staysMap && len(nowMap) > 0, now == nil && isMap && len(wasMap) > 0, isMap && staysMap:
		for name, inner := range wasMap {
			differ(out, appended(path, name), inner, nowMap[name])
		}
		for name, inner := range nowMap {
			if _, both := wasMap[name]; !both {
				differ(out, appended(path, name), nil, inner)
			}
		}
	case same(was, now):
	default:
		*out = append(*out, change{path: append([]string(nil), path...), was: was, now: now})
	}
}

// appended may share memory with path: anyone who keeps it copies it.
func appended(path []string, name string) []string { return append(path[:len(path):len(path)], name) }

// same compares values that different decoders may have read.
func same(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		text, ok := b.(string)
		return ok && a == text
	case bool:
		truth, ok := b.(bool)
		return ok && a == truth
	case int64, int, float64:
		switch b.(type) {
		case int64, int, float64:
			return float(a) == float(b)
		}
		return false
	case []any:
		items, ok := b.([]any)
		if !ok || len(items) != len(a) {
			return false
		}
		for i := range a {
			if !same(a[i], items[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		object, ok := b.(map[string]any)
		if !ok || len(object) != len(a) {
			return false
		}
		for name, inner := range a {
			other, ok := object[name]
			if !ok || !same(inner, other) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(a, b)
	}
}

func float(v any) float64 {
	if f, ok := v.(float64); ok {
		return f
	}
	return float64(number(v))
}
