package apisim

import "maps"

// merged returns an object with a JSON merge patch applied. Neither is changed. What is
// not touched is shared.
func merged(obj, patch content) content {
	out := maps.Clone(obj)
	for k, v := range patch {
		if v == nil {
			delete(out, k)
			continue
		}
		fields, isMap := v.(content)
		is, there := out[k].(content)
		switch {
		case isMap && there && is != nil:
			out[k] = merged(is, fields)
		default:
			out[k] = withoutNulls(v)
		}
	}
	return out
}

// withoutNulls drops the nulls of maps, as the library that servers use does where
// the patch brings in something new.
func withoutNulls(x any) any {
	switch x := x.(type) {
	case content:
		out := make(content, len(x))
		for k, v := range x {
			if v != nil {
				out[k] = withoutNulls(v)
			}
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, v := range x {
			out[i] = withoutNulls(v)
		}
		return out
	default:
		return x
	}
}

// mergedQuickly applies a merge patch without going through JSON. It reports failure
// where the long way is needed to tell what is wrong.
func (r *request) mergedQuickly(old *stored) (content, bool) {
	patch, ok := parsed(r.body)
	if !ok {
		return nil, false
	}
	obj := merged(old.content, patch)
	if _, ok := obj["metadata"].(content); !ok {
		return nil, false
	}
	m := ownMetadata(obj)
	if list, ok := m["managedFields"].([]any); ok && len(list) == 0 {
		return nil, false
	}
	for _, k := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		if isEmpty(m[k]) {
			delete(m, k)
		}
	}
	return r.kind.shape.adopt(obj)
}

func isEmpty(x any) bool {
	switch x := x.(type) {
	case content:
		return len(x) == 0
	case []any:
		return len(x) == 0
	default:
		return false
	}
}
