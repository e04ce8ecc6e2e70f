package fieldmerge

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// Difference is a field that a change gives another value.
type Difference struct {
	// Path is the field, such as .spec.replicas.
	Path string
	// Before is its value, and After the one that it gets; Null is one of null, nil means
	// that there is none.
	Before, After any
	// Made is set for a field that the API server or a controller writes by itself, and
	// nobody else.
	Made bool
	// Allocated is set for a field for which the API server chooses a value when an object is
	// written without.
	Allocated bool

	path fieldpath.Path
}

// SetBy reports whether a change with that content gives the field its value.
func (d Difference) SetBy(content map[string]any) bool {
	v, there := valueAt(content, d.path)
	return there && reflect.DeepEqual(v, d.After)
}

// Null is a value that is there and is null.
type Null struct{}

// Differences lists the fields that differ between Before and After, either of which may
// be nil, in the order of their paths. Objects and keyed lists are looked at in parts; an
// object that is new is listed by its fields.
func (i Images) Differences() []Difference {
	types, whole := root(i.Type)
	d := differ{types: types, kind: i.kind()}
	d.value(whole, i.contentOrNone(i.Before), i.contentOrNone(i.After))
	return d.found
}

func (i Images) contentOrNone(obj *unstructured.Unstructured) any {
	if obj == nil {
		return absent{}
	}
	return i.content(obj)
}

type differ struct {
	types typing
	kind  schema.GroupKind
	found []Difference
}

func (d *differ) value(n node, before, after any) {
	if reflect.DeepEqual(before, after) {
		return
	}
	parts, ok := d.types.split(n, before, after)
	if !ok || len(parts) == 0 {
		d.add(n, orNull(before), orNull(after))
		return
	}
	for _, p := range parts {
		d.value(p.node, p.values[0], p.values[1])
	}
	if isList(after) && reordered(parts, 0, 1) {
		d.add(n, before, after)
	}
}

func (d *differ) add(n node, before, after any) {
	by := knownAs(d.kind, n.path)
	d.found = append(d.found, Difference{
		Path: n.path.String(), Before: before, After: after, Made: by == made, Allocated: by == allocated, path: n.path.Copy(),
	})
}

func orNull(v any) any {
	switch v {
	case absent{}:
		return nil
	case nil:
		return Null{}
	default:
		return v
	}
}
