package fieldmerge

import (
	"reflect"

	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/value"
)

// step is what a change made of an object, without what the server sets.
type step struct{ before, after *lookup }

func (i Images) step() step {
	return step{before: lookupIn(i.content(i.Before)), after: lookupIn(i.content(i.After))}
}

// takes reports whether the step took a field from anyone who owned it: the API
// server takes a field whose value is changed from everybody but the writer, and
// leaves a field whose value stays to those who own it. owned is what anyone owns.
// Having changed something inside an object or a list that is granular takes only
// that; those that are atomic are owned without anything below them. Null is to the
// server an object or a list with nothing in it, where the other value is one.
func (s step) takes(owned *fieldpath.Set, path fieldpath.Path) bool {
	before, inBefore := s.before.at(path)
	after, inAfter := s.after.at(path)
	if !inBefore || !inAfter {
		return inBefore != inAfter
	}
	if reflect.DeepEqual(before, after) {
		return false
	}
	containers := isContainer(before) && isContainer(after) || before == nil && isContainer(after) || isContainer(before) && after == nil
	return !containers || isLeaf(owned, path)
}

func isContainer(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	default:
		return false
	}
}

// isLeaf reports whether a set holds nothing below path.
func isLeaf(set *fieldpath.Set, path fieldpath.Path) bool {
	for _, element := range path {
		set = set.WithPrefix(element)
	}
	return set.Empty()
}

// holdsBelow reports whether a set holds path or anything below it.
func holdsBelow(set *fieldpath.Set, path fieldpath.Path) bool {
	return set.Has(path) || !isLeaf(set, path)
}

// exists reports whether a field is there, found by its path alone: list items
// carry their keys or values in the path.
func exists(object any, path fieldpath.Path) bool {
	_, ok := valueAt(object, path)
	return ok
}

func valueAt(object any, path fieldpath.Path) (any, bool) {
	for _, element := range path {
		next, ok := elementOf(object, element)
		if !ok {
			return nil, false
		}
		object = next
	}
	return object, true
}

func elementOf(object any, element fieldpath.PathElement) (any, bool) {
	if element.FieldName != nil {
		m, _ := object.(map[string]any)
		v, ok := m[*element.FieldName]
		return v, ok
	}
	items, _ := object.([]any)
	if element.Index != nil {
		if *element.Index < 0 || *element.Index >= len(items) {
			return nil, false
		}
		return items[*element.Index], true
	}
	for _, item := range items {
		if element.Value != nil && value.Equals(value.NewValueInterface(item), *element.Value) {
			return item, true
		}
		if element.Key != nil && hasKeys(item, *element.Key) {
			return item, true
		}
	}
	return nil, false
}

func hasKeys(item any, keys value.FieldList) bool {
	m, ok := item.(map[string]any)
	if !ok {
		return false
	}
	for _, key := range keys {
		v, ok := m[key.Name]
		if !ok || !value.Equals(value.NewValueInterface(v), key.Value) {
			return false
		}
	}
	return true
}
