package fieldmerge

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
)

// View is an object as a version of its kind shows it, and how the version merges.
type View struct {
	Object *unstructured.Unstructured
	Type   typed.ParseableType
}

// Hidden lists the fields that one version of a kind shows of an object and another, of the
// same object, does not, status included. Fields that show nothing but the default that
// their version has for them do not count. converted tells that the version has other
// fields in turn, or other values in the same: then the fields may be there under another
// name.
func Hidden(by, other View) (hidden []FieldConflict, converted bool) {
	mine, _ := root(by.Type)
	theirs, whole := root(other.Type)
	h := hider{mine: mine, theirs: theirs, whole: whole}
	h.value(whole, shownBy(by.Object), shownBy(other.Object))
	return h.found, h.converted
}

func shownBy(obj *unstructured.Unstructured) map[string]any {
	out := Strip(obj).Object
	if status, there := obj.Object["status"]; there {
		out["status"] = status
	}
	delete(out, "apiVersion")
	return out
}

type hider struct {
	mine, theirs typing
	whole        node
	found        []FieldConflict
	converted    bool
}

func (h *hider) value(n node, mine, theirs any) {
	if reflect.DeepEqual(mine, theirs) {
		return
	}
	if parts, ok := h.theirs.split(n, mine, theirs); ok && mine != (absent{}) && theirs != (absent{}) {
		for _, p := range parts {
			h.value(p.node, p.values[0], p.values[1])
		}
		return
	}
	a, isA := mine.([]any)
	b, isB := theirs.([]any)
	switch {
	case isA && isB && len(a) == len(b):
		h.items(n, a, b)
	case theirs == (absent{}):
		h.converted = h.converted || !h.mine.defaults(h.whole, n.path, mine)
	case mine == (absent{}):
		if !h.theirs.defaults(h.whole, n.path, theirs) && !isZero(theirs) {
			h.found = append(h.found, FieldConflict{Path: n.path.String(), Now: theirs, path: n.path.Copy()})
		}
	default:
		h.converted = true
	}
}

// items compares the items of a list that is one value, by their positions.
func (h *hider) items(n node, mine, theirs []any) {
	for i := range mine {
		item := node{path: append(n.path.Copy(), fieldpath.PathElement{Index: &i})}
		if atom, ok := h.theirs.schema.Resolve(n.ref); ok && atom.List != nil {
			item.ref = atom.List.ElementType
		}
		x, isX := mine[i].(map[string]any)
		y, isY := theirs[i].(map[string]any)
		atom, ok := h.theirs.schema.Resolve(item.ref)
		if !isX || !isY || !ok || atom.Map == nil {
			h.value(item, mine[i], theirs[i])
			continue
		}
		for _, c := range h.theirs.fields(item, atom.Map, []map[string]any{x, y}) {
			h.value(c.node, c.values[0], c.values[1])
		}
	}
}

// Unshown lists the fields that managers own by a version of the kind for which of says so,
// and that the object does not have.
func Unshown(obj *unstructured.Unstructured, of func(apiVersion string) bool) []FieldConflict {
	all, err := entriesOf(obj)
	if err != nil {
		return nil
	}
	var out []FieldConflict
	there := lookupIn(obj.Object)
	for _, e := range all {
		if !of(e.APIVersion) {
			continue
		}
		e.set.Leaves().Iterate(func(p fieldpath.Path) {
			if !there.has(p) {
				out = append(out, FieldConflict{Path: p.String(), path: p.Copy()})
			}
		})
	}
	return out
}

// Alone is an object that has the field and nothing else. Its value is null.
func (c FieldConflict) Alone() map[string]any {
	var v any
	for _, element := range slices.Backward(c.path) {
		if element.FieldName != nil {
			v = map[string]any{*element.FieldName: v}
		} else {
			v = []any{v}
		}
	}
	object, _ := v.(map[string]any)
	return object
}
