package fieldmerge

import (
	"bytes"
	"encoding/base64"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/schema"
	"sigs.k8s.io/structured-merge-diff/v4/typed"

	api "janus.io/janus/api/v1alpha1"
)

// Answer is a field that content sets and that the API server has made something else of.
type Answer struct {
	FieldConflict
	// Entry is set for an entry of a map or an item of a list, which are not what is left
	// out: of a field with a name the API server makes what it makes of one that is.
	Entry bool
}

// In returns the value of the field in an object.
func (c FieldConflict) In(object map[string]any) (any, bool) { return valueAt(object, c.path) }

// Owners names the managers, those of the control plane aside, that own the field in an
// object, or something below it.
func (c FieldConflict) Owners(obj *unstructured.Unstructured) []string {
	return ownersBelow(obj, c.path, ControlPlane)
}

// SameValue reports whether two values are equal, however their numbers were decoded.
func SameValue(a, b any) bool { return sameJSON(a, b) }

// Hollow reports whether there is nothing in a value.
func Hollow(v any) bool { return isZero(v) }

// Answers lists the fields that content sets, null included, and that are not so in after,
// which the API server has made of it: Before is what was asked for, Now what it is. What
// the server adds does not count, nor what it sets by itself. With normalized, a value that
// is written in another way, such as 1000m for 1, is the same: so it is of the kinds of
// Kubernetes.
func Answers(t typed.ParseableType, content, after map[string]any, normalized bool) []Answer {
	types, whole := root(t)
	a := answers{types: types, normalized: normalized}
	a.value(whole, content, after, false)
	return a.found
}

type answers struct {
	types      typing
	normalized bool
	found      []Answer
}

func (a *answers) value(n node, asked, is any, entry bool) {
	if reflect.DeepEqual(asked, is) || a.serversOwn(n) {
		return
	}
	switch asked := asked.(type) {
	case nil:
		if is != (absent{}) {
			a.add(n, Null{}, is, entry)
		}
		return
	case map[string]any:
		if object, ok := is.(map[string]any); ok {
			a.object(n, asked, object)
			return
		}
	case []any:
		if list, ok := is.([]any); ok && a.list(n, asked, list) {
			return
		}
	}
	if !a.same(asked, is) {
		a.add(n, asked, is, entry)
	}
}

func (a *answers) add(n node, asked, is any, entry bool) {
	a.found = append(a.found, Answer{FieldConflict{Path: n.path.String(), Before: asked, Now: orNil(is), path: n.path.Copy()}, entry})
}

func (a *answers) object(n node, asked, is map[string]any) {
	declared := &schema.Map{}
	if atom, ok := a.types.schema.Resolve(n.ref); ok && atom.Map != nil {
		declared = atom.Map
	}
	for _, c := range a.types.fields(n, declared, []map[string]any{asked, is}) {
		if c.values[0] == (absent{}) {
			continue
		}
		_, named := declared.FindField(*c.path[len(c.path)-1].FieldName)
		a.value(c.node, c.values[0], c.values[1], !named)
	}
}

// list looks at the items of a list, by their identity or else by their positions; false
// if there are not as many of them.
func (a *answers) list(n node, asked, is []any) bool {
	if children, ok := a.types.split(n, asked, is); ok {
		for _, c := range children {
			if c.values[0] != (absent{}) {
				a.value(c.node, c.values[0], c.values[1], true)
			}
		}
		return true
	}
	if len(asked) != len(is) {
		return false
	}
	item := node{path: n.path}
	if atom, ok := a.types.schema.Resolve(n.ref); ok && atom.List != nil {
		item.ref = atom.List.ElementType
	}
	for i := range asked {
		a.value(item, asked[i], is[i], true)
	}
	return true
}

// serversOwn reports whether a field is one that the API server sets, whatever it is given.
func (a *answers) serversOwn(n node) bool {
	name := func(at int) string {
		if len(n.path) > at && n.path[at].FieldName != nil {
			return *n.path[at].FieldName
		}
		return ""
	}
	switch name(0) {
	case "apiVersion", "kind":
		return true
	case "status":
		return len(n.path) == 1 || a.normalized
	case "metadata":
		switch {
		case len(n.path) == 2:
			return slices.Contains(serverSet, name(1))
		case name(1) == "labels", name(1) == "annotations":
			// The API server makes some annotations out of fields, and fields out of some.
			return strings.HasPrefix(name(2), api.TransactionKey) || name(1) == "annotations" && strings.Contains(name(2), "kubernetes.io/")
		}
	}
	return false
}

// same reports whether a value is what was asked for, in another form.
func (a *answers) same(asked, is any) bool {
	if is == (absent{}) || is == nil {
		return isZero(asked)
	}
	if sameJSON(asked, is) {
		return true
	}
	if !a.normalized {
		return false
	}
	x, isText := asked.(string)
	y, _ := is.(string)
	return asked == "" || isText && (sameTime(x, y) || sameBytes(x, y)) || sameQuantity(asked, is)
}

// isZero reports whether a value is one that an object may leave out.
func isZero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, inner := range v {
			if !isZero(inner) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	default:
		return reflect.ValueOf(v).IsZero()
	}
}

func sameQuantity(a, b any) bool {
	x, okX := quantity(a)
	y, okY := quantity(b)
	return okX && okY && x.Cmp(y) == 0
}

func quantity(v any) (resource.Quantity, bool) {
	text, ok := v.(string)
	if n, isNumber := v.(int64); isNumber {
		return *resource.NewQuantity(n, resource.DecimalSI), true
	}
	if f, isNumber := v.(float64); isNumber {
		return *resource.NewMilliQuantity(int64(f*1000), resource.DecimalSI), true
	}
	if !ok {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}

func sameTime(a, b string) bool {
	x, errX := time.Parse(time.RFC3339Nano, a)
	y, errY := time.Parse(time.RFC3339Nano, b)
	return errX == nil && errY == nil && (x.Equal(y) || x.Truncate(time.Second).Equal(y))
}

func sameBytes(a, b string) bool {
	x, errX := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(a), ""))
	y, errY := base64.StdEncoding.DecodeString(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
