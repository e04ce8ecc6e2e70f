package oracle

import "k8s.io/apimachinery/pkg/api/resource"

// reaches reports whether one path is the other, or what it is in, or in it.
func reaches(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func reachesAny(path []string, all []change) bool {
	for i := range all {
		if reaches(path, all[i].path) {
			return true
		}
	}
	return false
}

// valueAt finds a value by its path.
func valueAt(object map[string]any, path []string) any {
	for _, name := range path[:len(path)-1] {
		object, _ = object[name].(map[string]any)
	}
	return object[path[len(path)-1]]
}

// with returns an object with a leaf set, or removed if the value is nil. The object is
// changed; what is shared with others was copied before.
func with(object map[string]any, path []string, value any) map[string]any {
	if object == nil {
		object = map[string]any{}
	}
	if len(path) == 0 {
		return object
	}
	name, rest := path[0], path[1:]
	if len(rest) == 0 {
		if value == nil {
			delete(object, name)
		} else {
			object[name] = value
		}
		return object
	}
	inner, _ := object[name].(map[string]any)
	if inner == nil && value == nil {
		if _, isMap := object[name].(map[string]any); !isMap {
			return object
		}
	}
	inner = with(inner, rest, value)
	if len(inner) == 0 {
		delete(object, name)
	} else {
		object[name] = inner
	}
	return object
}

// copied is a copy of the objects in an object; lists are shared.
func copied(object map[string]any) map[string]any {
	out := make(map[string]any, len(object))
	for name, v := range object {
		if inner, ok := v.(map[string]any); ok {
			v = copied(inner)
		}
		out[name] = v
	}
	return out
}

// holds reports whether an object has all that is asked for. What was asked for may
// have been written another way by the server: a quantity, an empty value, the zero
// of a field that is left out.
func holds(object, asked any) bool {
	switch asked := asked.(type) {
	case nil:
		return true
	case map[string]any:
		fields, _ := object.(map[string]any)
		for name, inner := range asked {
			if !holds(fields[name], inner) {
				return false
			}
		}
		return true
	case []any:
		items, _ := object.([]any)
		next := 0
		for _, inner := range asked {
			at := indexOf(items[min(next, len(items)):], inner)
			if at >= 0 {
				next += at + 1
			} else if indexOf(items, inner) < 0 {
				return false
			}
		}
		return true
	default:
		return same(object, asked) || object == nil && isZero(asked) || sameQuantity(object, asked)
	}
}

func indexOf(items []any, asked any) int {
	for i, item := range items {
		if holds(item, asked) {
			return i
		}
	}
	return -1
}

func isZero(v any) bool { return v == false || v == "" || v == float64(0) || v == int64(0) }

// sameQuantity reports whether two texts are one quantity, such as 1000m and 1.
func sameQuantity(a, b any) bool {
	one, ok := a.(string)
	other, isText := b.(string)
	if !ok || !isText || one == "" || other == "" {
		return false
	}
	x, err := resource.ParseQuantity(one)
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(other)
	return err == nil && x.Cmp(y) == 0
}
