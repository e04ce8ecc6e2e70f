package fieldmerge

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"

	api "janus.io/janus/api/v1alpha1"
)

// Strayed compares what the API server has stored with what it was asked to: admission,
// the schema of a kind and the defaults of another version make something else of it. The
// old value of each field that it gives is the one that was wanted.
//
// Marks are what need not be as it was: labels and annotations that admission has stamped on
// the object, which the change did not write, or which belong to nobody now or before, and
// fields that show the default that the schema has for them by now. Values are all others.
func (i Images) Strayed(wanted, stored *unstructured.Unstructured) (values, marks []FieldConflict) {
	types, whole := root(i.Type)
	compared, before, after := i, whenAsked(i.orEmpty(i.Before)), whenAsked(stored)
	compared.Before, compared.Live = wanted, stored
	for _, f := range compared.Drift() {
		f.Managers = nil
		switch {
		case f.Now != nil && isStamp(f.path) && (!i.writes(f.path) || unowned(after(), f.path) || unowned(before(), f.path)),
			f.Before == nil && f.Now != nil && types.defaults(whole, f.path, f.Now):
			marks = append(marks, f)
		default:
			values = append(values, f)
		}
	}
	return values, marks
}

// Stamps lists the labels and annotations of Live that were not there before and belong to
// nobody: admission has put them on the object in a write of whomever, this change's own
// too, so that nobody has come to own them.
func (i Images) Stamps() []FieldConflict {
	if i.Before == nil {
		return nil
	}
	var out []FieldConflict
	owners := whenAsked(i.Live)
	for _, kind := range []string{"annotations", "labels"} {
		now, _, _ := unstructured.NestedMap(i.Live.Object, "metadata", kind)
		for _, key := range slices.Sorted(maps.Keys(now)) {
			path := fieldpath.MakePathOrDie("metadata", kind, key)
			if !exists(i.Before.Object, path) && !strings.HasPrefix(key, api.TransactionKey) && unowned(owners(), path) {
				out = append(out, FieldConflict{Path: path.String(), Now: now[key], path: path})
			}
		}
	}
	return out
}

// Added lists the fields of Live outside of its metadata that were neither there before nor
// foretold by the change, and belong to nobody: admission has put them there too. They are
// values if nobody else has written the object since, so that they came with a write of this
// change, and marks if that is not known, or if they show a default of the schema.
func (i Images) Added() (values, marks []FieldConflict) {
	if i.Before == nil || i.After == nil || !Tracked(i.Live) {
		return nil, nil
	}
	types, whole := root(i.Type)
	a := adder{Images: i, types: types, whole: whole, now: whenAsked(i.Live)}
	a.value(whole, i.content(i.Before), i.content(i.After), i.content(i.Live))
	if i.writtenByOthers() {
		return nil, append(a.defaults, a.others...)
	}
	return a.others, a.defaults
}

// adder collects them: those that have the default of the schema, and others.
type adder struct {
	Images
	types            typing
	whole            node
	now              func() *holders
	defaults, others []FieldConflict
}

func (a *adder) value(n node, before, after, live any) {
	switch {
	case live == (absent{}), reflect.DeepEqual(live, before), reflect.DeepEqual(live, after), isMetadata(n.path), knownAs(a.kind(), n.path) != 0, untold(a.kind(), n.path):
	case before != (absent{}) || after != (absent{}):
		parts, _ := a.types.split(n, before, after, live)
		a.parts(parts)
	case len(a.now().below(n.path, nobodys)) > 0 || isContainer(live) && empty(live):
		// Whatever is inside came with what its owner has written.
	default:
		if parts, ok := a.types.split(n, before, after, live); ok && !isItem(n.path) {
			a.parts(parts)
			return
		}
		found := FieldConflict{Path: n.path.String(), Now: live, path: n.path.Copy()}
		if a.types.defaults(a.whole, n.path, live) {
			a.defaults = append(a.defaults, found)
		} else {
			a.others = append(a.others, found)
		}
	}
}

func (a *adder) parts(parts []child) {
	for _, p := range parts {
		a.value(p.node, p.values[0], p.values[1], p.values[2])
	}
}

// writtenByOthers reports whether anyone but the change, and components of the control plane,
// may have written the object since: an entry of managedFields is not as it was.
func (i Images) writtenByOthers() bool {
	theirs := func(obj *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
		return slices.DeleteFunc(slices.Clone(obj.GetManagedFields()), func(e metav1.ManagedFieldsEntry) bool {
			return i.Ours(e.Manager) || ControlPlane(e.Manager) || e.Subresource == "status"
		})
	}
	return !sameEntries(theirs(i.Before), theirs(i.Live))
}

// unowned reports whether a field of an object belongs to nobody: admission has written it.
func unowned(owners *holders, path fieldpath.Path) bool {
	return owners.tracked && owners.values.has(path) && len(owners.below(path, nobodys)) == 0
}

// writes reports whether the step from Before to After alters a field.
func (i Images) writes(path fieldpath.Path) bool {
	if i.Before == nil || i.After == nil {
		return false
	}
	before, inBefore := valueAt(i.Before.Object, path)
	after, inAfter := valueAt(i.After.Object, path)
	return inBefore != inAfter || !reflect.DeepEqual(before, after)
}

// isStamp reports whether a path is that of a label or an annotation of the object.
func isStamp(path fieldpath.Path) bool {
	return len(path) == 3 && (matches(path[:2], []string{"metadata", "labels"}) || matches(path[:2], []string{"metadata", "annotations"}))
}

// defaults reports whether a value is what the schema gives a field that is left out, or
// has nothing else in it.
func (t typing) defaults(n node, path fieldpath.Path, v any) bool {
	for at, element := range path {
		atom, ok := t.schema.Resolve(n.ref)
		last := at == len(path)-1
		switch {
		case !ok:
			return false
		case element.FieldName != nil && atom.Map != nil:
			f, known := atom.FindField(*element.FieldName)
			if known && last && f.Default != nil {
				return sameJSON(f.Default, v)
			}
			if n = (node{ref: f.Type}); !known {
				n = node{ref: atom.Map.ElementType}
			}
		case element.FieldName == nil && atom.List != nil:
			n = node{ref: atom.List.ElementType}
		default:
			return false
		}
	}
	return t.defaultsBelow(n, v)
}

// defaultsBelow reports whether every field of an object has its default.
func (t typing) defaultsBelow(n node, v any) bool {
	atom, ok := t.schema.Resolve(n.ref)
	object, isObject := v.(map[string]any)
	if !ok || !isObject || atom.Map == nil || len(object) == 0 {
		return false
	}
	for name, value := range object {
		f, known := atom.FindField(name)
		if !known || (f.Default == nil || !sameJSON(f.Default, value)) && !t.defaultsBelow(node{ref: f.Type}, value) {
			return false
		}
	}
	return true
}

// sameJSON compares values that may differ in how numbers are decoded.
func sameJSON(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, isX := number(a)
	y, isY := number(b)
	if isX && isY {
		return x == y
	}
	m, isM := a.(map[string]any)
	n, isN := b.(map[string]any)
	if isM && isN && len(m) == len(n) {
		for key, v := range m {
			if w, there := n[key]; !there || !sameJSON(v, w) {
				return false
			}
		}
		return true
	}
	k, isK := a.([]any)
	l, isL := b.([]any)
	return isK && isL && slices.EqualFunc(k, l, sameJSON)
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	default:
		return 0, false
	}
}

// WrittenBy leaves in a list the fields that no entry of managedFields holds of which known
// says that it is another client's.
func WrittenBy(list []FieldConflict, obj *unstructured.Unstructured, foreign func(metav1.ManagedFieldsEntry) bool) []FieldConflict {
	all, err := entriesOf(obj)
	if err != nil {
		return list
	}
	union := all.union()
	return slices.DeleteFunc(slices.Clone(list), func(f FieldConflict) bool {
		return slices.ContainsFunc(all, func(e entry) bool { return foreign(e.ManagedFieldsEntry) && e.holds(union, f.path) })
	})
}

// Outside leaves out fields that are at, or below, one of others.
func Outside(list, others []FieldConflict) []FieldConflict {
	return slices.DeleteFunc(slices.Clone(list), func(f FieldConflict) bool {
		return slices.ContainsFunc(others, func(o FieldConflict) bool {
			return len(f.path) >= len(o.path) && f.path[:len(o.path)].Equals(o.path)
		})
	})
}

// Withhold leaves fields that are not as they were to the managers of the change, instead of
// those who are to own them by the list: nobody is to be taken for having written a value
// that the API server has made of ours. So another look finds out again.
func (i Images) Withhold(list []metav1.ManagedFieldsEntry, strayed []FieldConflict) ([]metav1.ManagedFieldsEntry, error) {
	if len(strayed) == 0 {
		return list, nil
	}
	current, err := entriesOf(i.Live)
	if err != nil {
		return nil, err
	}
	shown := &unstructured.Unstructured{Object: map[string]any{}}
	shown.SetManagedFields(list)
	wanted, err := entriesOf(shown)
	if err != nil {
		return nil, err
	}
	paths := fieldpath.NewSet()
	for _, f := range strayed {
		paths.Insert(f.path)
	}
	var out []metav1.ManagedFieldsEntry
	add := func(e entry, set *fieldpath.Set) error {
		e, err := e.with(set)
		if err == nil && !set.Empty() {
			out = append(out, e.ManagedFieldsEntry)
		}
		return err
	}
	for _, e := range wanted {
		has := current.find(e.owner).set
		kept := e.set.RecursiveDifference(paths)
		e.set.Difference(kept).Iterate(func(p fieldpath.Path) {
			if has.Has(p) {
				kept.Insert(p.Copy())
			}
		})
		if err := add(e, kept); err != nil {
			return nil, err
		}
	}
	for _, e := range current {
		if i.Ours(e.Manager) {
			if err := add(e, e.set.Difference(e.set.RecursiveDifference(paths))); err != nil {
				return nil, err
			}
		}
	}
	sortAsServer(out)
	return out, nil
}
