package fieldmerge

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// Keep gives fields of desired the value that they have in live, and returns those that were to
// get another one.
func Keep(desired, live *unstructured.Unstructured, fields ...[]string) []FieldConflict {
	var out []FieldConflict
	for _, field := range fields {
		if !Differ(desired, live, field) {
			continue
		}
		parts := make([]any, len(field))
		for n, name := range field {
			parts[n] = name
		}
		path := fieldpath.MakePathOrDie(parts...)
		now, is := valueAt(live.Object, path)
		wanted, _ := valueAt(desired.Object, path)
		out = append(out, FieldConflict{Path: path.String(), Now: now, Before: wanted, path: path})
		if is {
			setAt(desired.Object, now, field)
		} else {
			unstructured.RemoveNestedField(desired.Object, field...)
		}
	}
	return out
}

// Differ reports whether two objects have another value in one of the fields.
func Differ(a, b *unstructured.Unstructured, fields ...[]string) bool {
	return slices.ContainsFunc(fields, func(field []string) bool {
		x, inA, _ := unstructured.NestedFieldNoCopy(a.Object, field...)
		y, inB, _ := unstructured.NestedFieldNoCopy(b.Object, field...)
		return inA != inB || !reflect.DeepEqual(x, y)
	})
}

// setAt sets a field, and makes the objects that it is in.
func setAt(object map[string]any, value any, field []string) {
	for _, name := range field[:len(field)-1] {
		inner, ok := object[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			object[name] = inner
		}
		object = inner
	}
	object[field[len(field)-1]] = value
}
