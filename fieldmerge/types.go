package fieldmerge

import (
	"sort"

	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/schema"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
	"sigs.k8s.io/structured-merge-diff/v4/value"
)

// absent stands for a field that is not there; nil is an explicit null.
type absent struct{}

// node is a place in an object, with what the schema says about it.
type node struct {
	path fieldpath.Path
	ref  schema.TypeRef
}

// child is a place right below a node: what each of several objects has there, and
// in a list, at which position; -1 where it is not there.
type child struct {
	node
	values []any
	at     []int
}

// typing looks places up in the schema of a kind.
type typing struct {
	schema *schema.Schema
	// deduced is set when there is no schema, so that every list is one value.
	deduced bool
}

// root returns the types of a kind and the node of the whole object.
func root(t typed.ParseableType) (typing, node) {
	deduced := t.Schema == nil || t.Schema == typed.DeducedParseableType.Schema
	if deduced {
		t = typed.DeducedParseableType
	}
	return typing{schema: t.Schema, deduced: deduced}, node{ref: t.TypeRef}
}

// split returns what is right below a node, if the schema and all the values let it
// be looked at in parts: objects, and lists whose items have an identity. A value
// that is not there has no parts. ok is false where the values are to be compared
// as a whole.
func (t typing) split(n node, values ...any) (children []child, ok bool) {
	atom, found := t.schema.Resolve(n.ref)
	if !found {
		return nil, false
	}
	if objects, ok := all[map[string]any](values); ok && atom.Map != nil && atom.Map.ElementRelationship != schema.Atomic {
		return t.fields(n, atom.Map, objects), true
	}
	if lists, ok := all[[]any](values); ok && atom.List != nil && atom.List.ElementRelationship == schema.Associative {
		return t.items(n, atom.List, lists)
	}
	return nil, false
}

// all returns the values as what they all are; at least one must be there.
func all[T any](values []any) ([]T, bool) {
	out, some := make([]T, len(values)), false
	for i, v := range values {
		if v == (absent{}) {
			continue
		}
		typed, ok := v.(T)
		if !ok {
			return nil, false
		}
		out[i], some = typed, true
	}
	return out, some
}

func (t typing) fields(n node, m *schema.Map, objects []map[string]any) []child {
	names := map[string]bool{}
	for _, o := range objects {
		for name := range o {
			names[name] = true
		}
	}
	var out []child
	for name := range names {
		c := child{node: node{path: append(n.path.Copy(), fieldpath.PathElement{FieldName: &name}), ref: m.ElementType}}
		if f, ok := m.FindField(name); ok {
			c.ref = f.Type
		}
		for _, o := range objects {
			c.values = append(c.values, field(o, name))
		}
		out = append(out, c)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].path.Compare(out[j].path) < 0 })
	return out
}

func field(object map[string]any, name string) any {
	if v, ok := object[name]; ok {
		return v
	}
	return absent{}
}

// items returns the items of lists by their identity. A list in which two have the
// same, or one has none, is compared as a whole.
func (t typing) items(n node, l *schema.List, lists [][]any) ([]child, bool) {
	var out []child
	known := map[string]int{}
	for i, list := range lists {
		for position, item := range list {
			identity, ok := t.identity(l, item)
			if !ok {
				return nil, false
			}
			key, err := fieldpath.SerializePathElement(identity)
			if err != nil {
				return nil, false
			}
			index, seen := known[key]
			if !seen {
				index = len(out)
				known[key] = index
				out = append(out, newItem(node{path: append(n.path.Copy(), identity), ref: l.ElementType}, len(lists)))
			}
			if out[index].at[i] >= 0 {
				return nil, false
			}
			out[index].values[i], out[index].at[i] = item, position
		}
	}
	return out, true
}

func newItem(n node, lists int) child {
	c := child{node: n, values: make([]any, lists), at: make([]int, lists)}
	for i := range lists {
		c.values[i], c.at[i] = absent{}, -1
	}
	return c
}

// identity is what tells an item of a list from the others: its keys, where one
// that is left out has its default, or in a set the item itself.
func (t typing) identity(l *schema.List, item any) (fieldpath.PathElement, bool) {
	if len(l.Keys) == 0 {
		v := value.NewValueInterface(item)
		return fieldpath.PathElement{Value: &v}, true
	}
	object, ok := item.(map[string]any)
	if !ok {
		return fieldpath.PathElement{}, false
	}
	keys := make(value.FieldList, 0, len(l.Keys))
	for _, name := range l.Keys {
		v, ok := object[name]
		if !ok {
			v = t.defaultOf(l.ElementType, name)
		}
		if v == nil {
			return fieldpath.PathElement{}, false
		}
		keys = append(keys, value.Field{Name: name, Value: value.NewValueInterface(v)})
	}
	keys.Sort()
	return fieldpath.PathElement{Key: &keys}, true
}

func (t typing) defaultOf(item schema.TypeRef, name string) any {
	atom, ok := t.schema.Resolve(item)
	if !ok || atom.Map == nil {
		return nil
	}
	f, ok := atom.FindField(name)
	if !ok {
		return nil
	}
	return f.Default
}
