package fieldmerge

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/value"
)

// manyItems is from how many items on a list is worth an index.
const manyItems = 32

// lookup finds many fields of one object, which does not change meanwhile. It looks through a long
// list once and not for each of its items: a megabyte of finalizers would take minutes.
type lookup struct {
	object any
	lists  map[listKey]map[string]any // nil for one that has no index
}

// listKey tells a list by its first item, and by which keys its items are told apart.
type listKey struct {
	first *any
	keys  string
}

func lookupIn(object any) *lookup {
	return &lookup{object: object, lists: map[listKey]map[string]any{}}
}

func (l *lookup) at(path fieldpath.Path) (any, bool) {
	object := l.object
	for _, element := range path {
		next, ok := l.element(object, element)
		if !ok {
			return nil, false
		}
		object = next
	}
	return object, true
}

func (l *lookup) has(path fieldpath.Path) bool {
	_, ok := l.at(path)
	return ok
}

func (l *lookup) element(object any, element fieldpath.PathElement) (any, bool) {
	items, _ := object.([]any)
	wanted, ok := elementText(element)
	if len(items) < manyItems || !ok {
		return elementOf(object, element)
	}
	of := listKey{first: &items[0], keys: keysOf(element)}
	index, known := l.lists[of]
	if !known {
		index = indexOf(items, element)
		l.lists[of] = index
	}
	found, there := index[wanted]
	if _, same := elementOf([]any{found}, element); index == nil || there && !same {
		return elementOf(object, element) // Texts may be alike by accident.
	}
	return found, there
}

// indexOf returns the items of a list by their identities, the first of those that have the same;
// nil if one has an identity that is no scalar.
func indexOf(items []any, like fieldpath.PathElement) map[string]any {
	index := make(map[string]any, len(items))
	for _, item := range items {
		own, has := elementLike(item, like)
		if !has {
			continue
		}
		identity, ok := elementText(own)
		if !ok {
			return nil
		}
		if _, seen := index[identity]; !seen {
			index[identity] = item
		}
	}
	return index
}

// elementLike is the element by which an item is told from others, in the way of another one; false
// if it has not all of the keys.
func elementLike(item any, like fieldpath.PathElement) (fieldpath.PathElement, bool) {
	if like.Key == nil {
		v := value.NewValueInterface(item)
		return fieldpath.PathElement{Value: &v}, true
	}
	keys, has := keysIn(item, *like.Key)
	return fieldpath.PathElement{Key: &keys}, has
}

// keysIn are the keys of an item; false if it has not all of them.
func keysIn(item any, like value.FieldList) (value.FieldList, bool) {
	object, _ := item.(map[string]any)
	keys := make(value.FieldList, len(like))
	for n, key := range like {
		v, has := object[key.Name]
		if !has {
			return nil, false
		}
		keys[n] = value.Field{Name: key.Name, Value: value.NewValueInterface(v)}
	}
	return keys, true
}

func keysOf(element fieldpath.PathElement) string {
	if element.Key == nil {
		return ""
	}
	var names strings.Builder
	for _, key := range *element.Key {
		names.WriteString(key.Name + "\x00")
	}
	return names.String()
}

// elementText is a text that is the same for elements that are the same item of a list; false if
// the element is none, or its identity is no scalar.
func elementText(element fieldpath.PathElement) (string, bool) {
	switch {
	case element.Value != nil:
		return scalarText((*element.Value).Unstructured())
	case element.Key == nil:
		return "", false
	}
	var all strings.Builder
	for _, key := range *element.Key {
		text, ok := scalarText(key.Value.Unstructured())
		if !ok {
			return "", false
		}
		all.WriteString(text + "\x00")
	}
	return all.String(), true
}

// scalarText is the same for a whole number however it was decoded.
func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return "s" + v, true
	case int64:
		return fmt.Sprint("n", float64(v)), true
	case float64:
		return fmt.Sprint("n", v), true
	case bool, nil:
		return fmt.Sprint(v), true
	default:
		return "", false
	}
}

// named are elements of a list, by which keys they are told apart and by their identities.
type named struct {
	likes []fieldpath.PathElement // one for each choice of keys
	by    map[string]map[string][]fieldpath.PathElement
	odd   []fieldpath.PathElement // those whose identity is no scalar
}

// namedBelow are the elements of lists that a set has, or has something below.
func namedBelow(set *fieldpath.Set) named {
	n := named{by: map[string]map[string][]fieldpath.PathElement{}}
	eachBelow(set, func(e fieldpath.PathElement) {
		identity, ok := elementText(e)
		keys := keysOf(e)
		switch {
		case !ok:
			n.odd = append(n.odd, e)
			return
		case n.by[keys] == nil:
			n.likes, n.by[keys] = append(n.likes, e), map[string][]fieldpath.PathElement{}
		}
		n.by[keys][identity] = append(n.by[keys][identity], e)
	})
	return n
}

// of are those of the elements that an item is.
func (n named) of(item any) []fieldpath.PathElement {
	candidates := n.odd
	for _, like := range n.likes {
		if own, has := elementLike(item, like); has {
			identity, _ := elementText(own)
			candidates = append(candidates[:len(candidates):len(candidates)], n.by[keysOf(like)][identity]...)
		}
	}
	return slices.DeleteFunc(slices.Clone(candidates), func(e fieldpath.PathElement) bool {
		_, is := elementOf([]any{item}, e)
		return !is || e.Index != nil
	})
}
