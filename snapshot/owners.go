package snapshot

import (
	"bytes"
	"fmt"
	"sort"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/value"
)

// owner identifies an entry of managedFields. An applier is one owner whatever
// version it applied with.
type owner struct {
	manager, subresource, version string
	operation                     metav1.ManagedFieldsOperationType
}

func ownerOf(e metav1.ManagedFieldsEntry) owner {
	o := owner{manager: e.Manager, subresource: e.Subresource, operation: e.Operation, version: e.APIVersion}
	if e.Operation == metav1.ManagedFieldsOperationApply {
		o.version = ""
	}
	return o
}

func fieldsOf(e metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	if e.FieldsV1 == nil {
		return set, nil
	}
	if err := set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil {
		return nil, fmt.Errorf("managedFields of %s: %w", e.Manager, err)
	}
	return set, nil
}

// Owned reports whether a manager that ours knows has an entry on the object.
func Owned(obj *unstructured.Unstructured, ours func(manager string) bool) bool {
	for _, e := range obj.GetManagedFields() {
		if ours(e.Manager) {
			return true
		}
	}
	return false
}

// RestoreOwners gives managedFields as they were before the change, as far as
// others have not written since: our entries go, and what each manager owned
// before and lost to the change comes back to it, limited to fields that exist.
// Fields that somebody has claimed since stay theirs alone. live is the object
// with its values restored already. The second result says whether anything is to
// be written.
//
// What was lost to the change is told from what a manager gave up by itself by
// where it is: among the fields that the change owns now or altered.
func RestoreOwners(before, after, live *unstructured.Unstructured, ours func(string) bool) ([]metav1.ManagedFieldsEntry, bool, error) {
	reach, err := reachOf(before, after, live, ours)
	if err != nil {
		return nil, false, err
	}
	previous, err := setsOf(before)
	if err != nil {
		return nil, false, err
	}
	taken := claimed(before, live, ours)
	var out []metav1.ManagedFieldsEntry
	kept := map[owner]bool{}
	for _, e := range live.GetManagedFields() {
		if ours(e.Manager) {
			continue
		}
		set, err := fieldsOf(e)
		if err != nil {
			return nil, false, err
		}
		kept[ownerOf(e)] = true
		lost := giveBack(previous[ownerOf(e)], set, reach, taken, live)
		if entry, ok := entryWith(e, set.Union(lost)); ok {
			out = append(out, entry)
		}
	}
	for _, e := range before.GetManagedFields() {
		if kept[ownerOf(e)] {
			continue
		}
		lost := giveBack(previous[ownerOf(e)], fieldpath.NewSet(), reach, taken, live)
		if entry, ok := entryWith(e, lost); ok {
			out = append(out, entry)
		}
	}
	out = orderLike(before.GetManagedFields(), out)
	return out, !equality.Semantic.DeepEqual(out, live.GetManagedFields()), nil
}

// giveBack is what an owner had before, does not have now, and lost to us.
func giveBack(had, has, reach, taken *fieldpath.Set, live *unstructured.Unstructured) *fieldpath.Set {
	out := fieldpath.NewSet()
	if had == nil {
		return out
	}
	had.Difference(has).Iterate(func(p fieldpath.Path) {
		if within(reach, p) && !taken.Has(p) && exists(live.Object, p) {
			out.Insert(p.Copy())
		}
	})
	return out
}

// entryWith is e with another set of fields; an entry of nothing is left out.
func entryWith(e metav1.ManagedFieldsEntry, set *fieldpath.Set) (metav1.ManagedFieldsEntry, bool) {
	if set.Empty() {
		return e, false
	}
	raw, err := set.ToJSON()
	if err != nil {
		return e, false
	}
	e.FieldsType = "FieldsV1"
	e.FieldsV1 = &metav1.FieldsV1{}
	e.FieldsV1.SetRawBytes(raw)
	return e, true
}

// orderLike sorts entries as they stood before; the new ones come last.
func orderLike(before, entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	rank := map[owner]int{}
	for i, e := range before {
		rank[ownerOf(e)] = i + 1
	}
	sort.SliceStable(entries, func(i, j int) bool {
		a, b := rank[ownerOf(entries[i])], rank[ownerOf(entries[j])]
		if a == 0 || b == 0 {
			return a != 0
		}
		return a < b
	})
	return entries
}

// reachOf is where the change can have taken ownership: the fields that our
// entries hold in live, and those whose value the change altered.
func reachOf(before, after, live *unstructured.Unstructured, ours func(string) bool) (*fieldpath.Set, error) {
	reach := fieldpath.NewSet()
	for _, e := range live.GetManagedFields() {
		if !ours(e.Manager) {
			continue
		}
		set, err := fieldsOf(e)
		if err != nil {
			return nil, err
		}
		reach = reach.Union(set)
	}
	altered(nil, Strip(before).Object, Strip(after).Object, reach)
	return reach, nil
}

// altered collects the topmost fields in which two objects differ.
func altered(path fieldpath.Path, before, after any, into *fieldpath.Set) {
	b, bok := before.(map[string]any)
	a, aok := after.(map[string]any)
	if !bok || !aok {
		if !equality.Semantic.DeepEqual(before, after) && len(path) > 0 {
			into.Insert(path.Copy())
		}
		return
	}
	for _, name := range fieldNames(b, a) {
		altered(append(path.Copy(), fieldpath.PathElement{FieldName: &name}), field(b, name), field(a, name), into)
	}
}

func setsOf(obj *unstructured.Unstructured) (map[owner]*fieldpath.Set, error) {
	out := map[owner]*fieldpath.Set{}
	for _, e := range obj.GetManagedFields() {
		set, err := fieldsOf(e)
		if err != nil {
			return nil, err
		}
		out[ownerOf(e)] = set
	}
	return out, nil
}

// claimed is every field that somebody else owns in live and did not own before:
// the only sign of somebody who has asserted the same value that we set. What is
// not readable is taken as claimed by nobody; RestoreOwners reports it.
func claimed(before, live *unstructured.Unstructured, ours func(string) bool) *fieldpath.Set {
	previous, err := setsOf(before)
	if err != nil {
		return fieldpath.NewSet()
	}
	out := fieldpath.NewSet()
	for _, e := range live.GetManagedFields() {
		if ours(e.Manager) {
			continue
		}
		set, err := fieldsOf(e)
		if err != nil {
			continue
		}
		if had := previous[ownerOf(e)]; had != nil {
			set = set.Difference(had)
		}
		out = out.Union(set)
	}
	return out
}

// ownersBelow names the managers, ours aside, that own path or anything below it.
func ownersBelow(obj *unstructured.Unstructured, path fieldpath.Path, ours func(string) bool) []string {
	seen := map[string]bool{}
	var out []string
	for _, e := range obj.GetManagedFields() {
		set, err := fieldsOf(e)
		if err != nil || ours(e.Manager) || seen[e.Manager] || !holdsBelow(set, path) {
			continue
		}
		seen[e.Manager] = true
		out = append(out, e.Manager)
	}
	sort.Strings(out)
	return out
}

// holdsBelow reports whether a set holds path or anything below it.
func holdsBelow(set *fieldpath.Set, path fieldpath.Path) bool {
	if set.Has(path) {
		return true
	}
	for _, element := range path {
		set = set.WithPrefix(element)
	}
	return !set.Empty()
}

// within reports whether a set holds path or a field above it.
func within(set *fieldpath.Set, path fieldpath.Path) bool {
	for n := len(path); n > 0; n-- {
		if set.Has(path[:n]) {
			return true
		}
	}
	return false
}

// exists reports whether a field is there, found by its path alone: list items
// carry their keys or values in the path.
func exists(object any, path fieldpath.Path) bool {
	for _, element := range path {
		next, ok := step(object, element)
		if !ok {
			return false
		}
		object = next
	}
	return true
}

func step(object any, element fieldpath.PathElement) (any, bool) {
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
