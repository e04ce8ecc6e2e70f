package fieldmerge

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Drift lists the fields in which live differs from its before-image, with who
// owns them now. The object's resourceVersion is not enough to tell: the status
// that a controller writes changes it too. What controllers are known to write
// does not count.
func (i Images) Drift() []FieldConflict {
	types, whole := root(i.Type)
	d := drifter{types: types, Images: i, now: whenAsked(i.Live)}
	d.value(whole, i.content(i.Before), i.content(i.Live))
	return d.found
}

type drifter struct {
	Images
	types typing
	now   func() *holders
	found []FieldConflict
}

func (d *drifter) value(n node, before, live any) {
	if reflect.DeepEqual(before, live) || d.isControllers(n.path) {
		return
	}
	if parts, ok := d.types.split(n, before, live); ok && !empty(before, live) {
		for _, p := range parts {
			d.value(p.node, p.values[0], p.values[1])
		}
		if isList(live) && reordered(parts, 0, 1) {
			d.add(n, before, live)
		}
		return
	}
	d.add(n, before, live)
}

func (d *drifter) add(n node, before, live any) {
	d.found = append(d.found, FieldConflict{
		Path: n.path.String(), Managers: d.now().below(n.path, nobodys), Now: orNil(live), Before: orNil(before), path: n.path.Copy(),
	})
}

func nobodys(string) bool { return false }

// ByControllers reports whether nothing but the control plane can have made a
// difference: it owns the field.
func (c FieldConflict) ByControllers() bool {
	for _, manager := range c.Managers {
		if !ControlPlane(manager) {
			return false
		}
	}
	return len(c.Managers) > 0
}

// Same reports whether an object has the field with the value that it has now.
func (c FieldConflict) Same(obj *unstructured.Unstructured) bool {
	v, there := valueAt(obj.Object, c.path)
	return there && reflect.DeepEqual(v, c.Now)
}

// SameBefore reports whether an object has the field as it was before, or has none if there was none.
func (c FieldConflict) SameBefore(obj *unstructured.Unstructured) bool {
	v, there := valueAt(obj.Object, c.path)
	return there == (c.Before != nil) && (!there || reflect.DeepEqual(v, c.Before))
}

// SetBy reports whether content, as a Patch has it, sets the field or something
// above or below it.
func (c FieldConflict) SetBy(content map[string]any) bool {
	var at any = content
	for _, element := range c.path {
		next, ok := elementOf(at, element)
		if !ok {
			return !isContainer(at)
		}
		at = next
	}
	return true
}
