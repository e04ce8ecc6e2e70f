package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// element is a part of the path of a field: a field of an object, or in brackets an item of
// a list, which is named by its keys, as in [name="web"], or its value, as in [="a"].
type element struct{ field, item string }

// freely are objects whose keys are free: a dot in one does not lead to a part of it.
var freely = []string{"annotations", "labels", "data", "binaryData", "stringData", "matchLabels", "nodeSelector"}

// elementsOf takes a path apart, such as .spec.containers[name="web"].image. Dots in keys
// are not told from those between fields, so what is known of the object decides.
func elementsOf(path string, known ...any) []element {
	var out []element
	for path != "" {
		var e element
		if path[0] == '[' {
			end := closing(path)
			e, path = element{item: path[1:end]}, path[min(end+1, len(path)):]
		} else {
			path = strings.TrimPrefix(path, ".")
			e.field = first(path, out, known)
			path = path[len(e.field):]
			if e.field == "" {
				return out
			}
		}
		out = append(out, e)
		for i := range known {
			known[i], _ = below(known[i], e)
		}
	}
	return out
}

// first is the field with which a path begins.
func first(path string, before []element, known []any) string {
	longest := ""
	for _, k := range known {
		object, _ := k.(map[string]any)
		for key := range object {
			rest, found := strings.CutPrefix(path, key)
			if found && len(key) > len(longest) && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				longest = key
			}
		}
	}
	switch end := strings.IndexAny(path, ".["); {
	case longest != "":
		return longest
	case len(before) > 0 && slices.Contains(freely, before[len(before)-1].field), end < 0:
		return path
	default:
		return path[:end]
	}
}

// closing is the place of the bracket that ends an item; the last one, if there is none.
func closing(path string) int {
	quoted := false
	for i := 1; i < len(path); i++ {
		switch {
		case path[i] == '\\' && quoted:
			i++
		case path[i] == '"':
			quoted = !quoted
		case path[i] == ']' && !quoted:
			return i
		}
	}
	return len(path)
}

// keys are those by which an item is named.
func (e element) keys() map[string]any {
	out := map[string]any{}
	text := e.item
	for text != "" {
		key, rest, found := strings.Cut(text, "=")
		d := json.NewDecoder(strings.NewReader(rest))
		d.UseNumber()
		var value any
		if !found || key == "" || d.Decode(&value) != nil {
			return out
		}
		out[key] = value
		text = strings.TrimPrefix(rest[d.InputOffset():], ",")
	}
	return out
}

// picks reports whether it is this item that is meant.
func (e element) picks(item any) bool {
	if value, found := strings.CutPrefix(e.item, "="); found {
		text, err := json.Marshal(item)
		return err == nil && string(text) == value
	}
	object, ok := item.(map[string]any)
	keys := e.keys()
	if !ok || len(keys) == 0 {
		return false
	}
	for key, want := range keys {
		if !same(object[key], want) {
			return false
		}
	}
	return true
}

// same compares values, of which numbers may have been read in other ways.
func same(a, b any) bool {
	x, err := json.Marshal(a)
	y, other := json.Marshal(b)
	return err == nil && other == nil && bytes.Equal(x, y)
}

// below is what a value has at an element.
func below(v any, e element) (any, bool) {
	if e.item == "" {
		object, _ := v.(map[string]any)
		found, ok := object[e.field]
		return found, ok
	}
	list, _ := v.([]any)
	for _, item := range list {
		if e.picks(item) {
			return item, true
		}
	}
	return nil, false
}

// at is what a value has at the end of a path.
func at(v any, path []element) (any, bool) {
	for _, e := range path {
		next, ok := below(v, e)
		if !ok {
			return nil, false
		}
		v = next
	}
	return v, v != nil
}

// sets reports whether a content sets a field of a plan, or something in it.
func sets(content any, path string) bool {
	v := content
	for _, e := range elementsOf(path, content) {
		next, ok := below(v, e)
		if list, isList := v.([]any); !ok && isList {
			next, ok = loosely(list, e)
		}
		if !ok {
			return false
		}
		v = next
	}
	return true
}

// loosely finds the item of a list that is meant, if it leaves out keys to which the API server gives
// values.
func loosely(list []any, e element) (any, bool) {
	keys := e.keys()
	for _, item := range list {
		object, _ := item.(map[string]any)
		some := false
		for key, want := range keys {
			value, there := object[key]
			if there && !same(value, want) {
				some = false
				break
			}
			some = some || there
		}
		if some {
			return item, true
		}
	}
	return nil, false
}
