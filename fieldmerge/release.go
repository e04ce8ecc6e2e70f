package fieldmerge

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
)

// Release says which managers are to own which fields no more.
type Release struct {
	Managers []string `json:"managers,omitempty"`
	// Fields are the paths of the fields, as OwnedFields has them, with all that is inside;
	// none for all that the managers own.
	Fields []string `json:"fields,omitempty"`
	// To is an applier that keeps what it owns, even if it is one of the managers.
	To string `json:"to,omitempty"`
}

// of lists what each owner is to own no more. Paths of another version of the kind cannot be
// looked up in the object, and the status is written by a subresource of its own.
func (r Release) of(list entries, version string) (entries, error) {
	var out entries
	for _, e := range list {
		keeps := e.Operation == metav1.ManagedFieldsOperationApply && e.Manager == r.To
		if keeps || !slices.Contains(r.Managers, e.Manager) || e.APIVersion != version || e.Subresource == "status" {
			continue
		}
		one, err := e.with(only(e.set, r.covers))
		if err != nil {
			return nil, err
		}
		if !one.set.Empty() {
			out = append(out, one)
		}
	}
	return out, nil
}

// covers reports whether a field is one of Fields, or inside of one.
func (r Release) covers(path fieldpath.Path) bool {
	return len(r.Fields) == 0 || slices.ContainsFunc(r.Fields, func(field string) bool { return isInside(path, field) })
}

func isInside(path fieldpath.Path, field string) bool {
	for n := range path {
		if path[:n+1].String() == field {
			return true
		}
	}
	return false
}

// Released is what a Release comes to on an object.
type Released struct {
	// Content has the released fields with their values: to apply it owns them, and changes none.
	Content map[string]any
	// Owners are who gives up what of it.
	Owners []OwnedFields
	// Idle are the managers that give up nothing, and Fields those that none of them owns.
	Idle, Fields []string
	// Stay are who owns fields of Content as well, and keeps them.
	Stay []OwnedFields
}

// On finds out what the release comes to on an object. A field that is not there cannot be
// applied, and is left out.
func (r Release) On(obj *unstructured.Unstructured) (Released, error) {
	list, err := entriesOf(obj)
	if err != nil {
		return Released{}, err
	}
	giving, err := r.of(list, obj.GetAPIVersion())
	if err != nil {
		return Released{}, err
	}
	out := Released{Idle: slices.Clone(r.Managers), Fields: slices.Clone(r.Fields)}
	all, values := fieldpath.NewSet(), lookupIn(obj.Object)
	for _, e := range giving {
		there := only(e.set, func(p fieldpath.Path) bool { v, ok := values.at(p); return ok && v != nil })
		if there.Empty() {
			continue
		}
		all = all.Union(there)
		out.Owners = append(out.Owners, ownedBy(e, there))
		out.Idle = slices.DeleteFunc(out.Idle, func(manager string) bool { return manager == e.Manager })
	}
	out.Fields = slices.DeleteFunc(out.Fields, func(field string) bool {
		return !only(all, func(p fieldpath.Path) bool { return isInside(p, field) }).Empty()
	})
	for _, e := range list {
		if kept := e.set.Difference(giving.find(e.owner).set).Intersection(all.Leaves()); !kept.Empty() {
			out.Stay = append(out.Stay, ownedBy(e, kept))
		}
	}
	var ok bool
	if out.Content, ok = cut(obj.Object, all, list.union()).(map[string]any); !ok {
		return Released{}, fmt.Errorf("%s is not an object", obj.GetKind())
	}
	return out, nil
}

// At returns the fields that content sets with the values that they have in an object. What is not there
// is left out.
func At(t typed.ParseableType, content map[string]any, obj *unstructured.Unstructured) (map[string]any, error) {
	list, err := entriesOf(obj)
	if err != nil {
		return nil, err
	}
	set := Images{Type: t, Live: obj}.contentSet([]map[string]any{content})
	out, ok := cut(obj.Object, set, list.union()).(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", obj.GetKind())
	}
	return out, nil
}

func ownedBy(e entry, set *fieldpath.Set) OwnedFields {
	out := OwnedFields{Manager: e.Manager, Subresource: e.Subresource}
	set.Iterate(func(p fieldpath.Path) {
		if isItem(p) || isLeaf(set, p) {
			out.Paths = append(out.Paths, p.String())
		}
	})
	return out
}

// cut is a value without what is not in a set. What is owned in parts is cut down to its
// parts; anything else is one value. Items of lists stay in their order: another one would
// be applied too.
func cut(v any, set, owned *fieldpath.Set) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		eachBelow(set, func(e fieldpath.PathElement) {
			if inside, ok := elementOf(v, e); ok && inside != nil {
				out[*e.FieldName] = cutBelow(inside, e, set, owned)
			}
		})
		return out
	case []any:
		out := []any{}
		named := namedBelow(set)
		for _, item := range v {
			for _, e := range named.of(item) {
				out = append(out, withKeys(cutBelow(item, e, set, owned), e))
			}
		}
		return out
	default:
		return v
	}
}

// cutBelow is what of a value below another one is in the set of that.
func cutBelow(v any, at fieldpath.PathElement, set, owned *fieldpath.Set) any {
	if owned = owned.WithPrefix(at); set.Members.Has(at) && owned.Empty() {
		return runtime.DeepCopyJSONValue(v)
	}
	return cut(v, set.WithPrefix(at), owned)
}

// withKeys is a list item with the keys by which it is told from others.
func withKeys(item any, at fieldpath.PathElement) any {
	if m, ok := item.(map[string]any); ok && at.Key != nil {
		for _, key := range *at.Key {
			m[key.Name] = key.Value.Unstructured()
		}
	}
	return item
}

// eachBelow calls a function for each element that a set has, or has something below.
func eachBelow(set *fieldpath.Set, do func(fieldpath.PathElement)) {
	set.Members.Iterate(do)
	set.Children.Iterate(func(e fieldpath.PathElement) {
		if !set.Members.Has(e) {
			do(e)
		}
	})
}

// less takes fields from owners. One that is left with none goes.
func (l entries) less(fields entries) (entries, error) {
	var out entries
	for _, e := range l {
		taken := fieldpath.NewSet()
		for _, f := range fields {
			if f.owner == e.owner && f.APIVersion == e.APIVersion {
				taken = taken.Union(f.set)
			}
		}
		rest, err := e.with(e.set.Difference(taken))
		if err != nil {
			return nil, err
		}
		if taken.Empty() || !rest.set.Empty() {
			out = append(out, rest)
		}
	}
	return out, nil
}

// within limits the fields of each owner to those of a set. An object or a list of which that has
// a part is one: who applies the part does not own the whole, and who updates it does.
func (l entries) within(set *fieldpath.Set) (entries, error) {
	out := make(entries, 0, len(l))
	for _, e := range l {
		e, err := e.with(only(e.set, func(p fieldpath.Path) bool { return holdsBelow(set, p) }))
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}
