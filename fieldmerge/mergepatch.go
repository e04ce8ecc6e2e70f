package fieldmerge

import "reflect"

// MergePatch returns a JSON merge patch (RFC 7386) from one object to another. A merge
// patch cannot set an explicit null, so that the caller has to see whether the
// patch does what it should. Lists are replaced as a whole. It is computed on the
// decoded objects because a detour over float64 would damage large integers.
func MergePatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range from {
		if _, there := to[key]; !there {
			patch[key] = nil
		}
	}
	for key, value := range to {
		before, there := from[key]
		if there && reflect.DeepEqual(before, value) {
			continue
		}
		beforeMap, isMap := before.(map[string]any)
		valueMap, staysMap := value.(map[string]any)
		if isMap && staysMap {
			patch[key] = MergePatch(beforeMap, valueMap)
			continue
		}
		patch[key] = value
	}
	return patch
}

// ApplyMergePatch applies a JSON merge patch. It shares values with its arguments and
// changes neither.
func ApplyMergePatch(object, patch map[string]any) map[string]any {
	out := make(map[string]any, len(object)+len(patch))
	for key, value := range object {
		out[key] = value
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(out, key)
		case map[string]any:
			// Into something that is no map, RFC 7386 merges as into an empty map:
			// that drops the nulls inside of the patch.
			inner, _ := out[key].(map[string]any)
			out[key] = ApplyMergePatch(inner, value)
		default:
			out[key] = value
		}
	}
	return out
}
