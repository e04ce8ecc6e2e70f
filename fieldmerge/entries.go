package fieldmerge

import (
	"bytes"
	"fmt"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
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

// entry is an entry of managedFields with its fields decoded.
type entry struct {
	metav1.ManagedFieldsEntry
	owner owner
	set   *fieldpath.Set
}

type entries []entry

func entriesOf(obj *unstructured.Unstructured) (entries, error) {
	return listOf(obj.GetManagedFields())
}

func listOf(list []metav1.ManagedFieldsEntry) (entries, error) {
	var out entries
	for _, e := range list {
		set := fieldpath.NewSet()
		if e.FieldsV1 != nil {
			if err := set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil {
				return nil, fmt.Errorf("managedFields of %s: %w", e.Manager, err)
			}
		}
		one := entry{ManagedFieldsEntry: e, owner: ownerOf(e), set: set}
		if err := out.add(one); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// add adds an entry. A second one of the same owner, which the API server makes of a
// write through a subresource that changes nothing, joins the first: it would keep
// one of the two alone with the next write.
func (l *entries) add(e entry) error {
	for i, known := range *l {
		if known.owner != e.owner || known.APIVersion != e.APIVersion {
			continue
		}
		joined, err := known.with(known.set.Union(e.set))
		if joined.Time == nil {
			joined.Time = e.Time
		}
		(*l)[i] = joined
		return err
	}
	*l = append(*l, e)
	return nil
}

// find returns the entry of an owner, with no fields if there is none.
func (l entries) find(o owner) entry {
	for _, e := range l {
		if e.owner == o {
			return e
		}
	}
	return entry{owner: o, set: fieldpath.NewSet()}
}

func (l entries) has(o owner) bool {
	for _, e := range l {
		if e.owner == o {
			return true
		}
	}
	return false
}

// with is e with another set of fields. One that is the same keeps its encoding.
func (e entry) with(set *fieldpath.Set) (entry, error) {
	if set.Equals(e.set) {
		return e, nil
	}
	raw, err := set.ToJSON()
	if err != nil {
		return e, fmt.Errorf("managedFields of %s: %w", e.Manager, err)
	}
	e.set, e.FieldsType, e.FieldsV1 = set, "FieldsV1", &metav1.FieldsV1{}
	e.FieldsV1.SetRawBytes(raw)
	return e, nil
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

// Managed reports whether managedFields name an owner of the field at path. A field that none
// owns was set by the control plane itself, such as the Node of a Pod by its binding.
func Managed(obj *unstructured.Unstructured, path ...string) bool {
	list, err := entriesOf(obj)
	if err != nil {
		return false
	}
	var at fieldpath.Path
	for _, name := range path {
		at = append(at, fieldpath.PathElement{FieldName: &name})
	}
	return slices.ContainsFunc(list, func(e entry) bool { return e.set.Has(at) })
}

// Tracked reports whether managedFields tell who has written an object: another
// client may have cleared them, and of more than ten writers the API server merges
// the oldest.
func Tracked(obj *unstructured.Unstructured) bool {
	return len(obj.GetManagedFields()) > 0 && !Owned(obj, func(manager string) bool { return manager == ancientChanges })
}

// sortAsServer sorts entries as the API server does when it stores them.
func sortAsServer(list []metav1.ManagedFieldsEntry) {
	seconds := func(e metav1.ManagedFieldsEntry) int64 {
		if e.Time == nil {
			return 0
		}
		return e.Time.Unix()
	}
	sort.SliceStable(list, func(i, j int) bool {
		a, b := list[i], list[j]
		switch {
		case a.Operation != b.Operation:
			return a.Operation < b.Operation
		case seconds(a) != seconds(b):
			return seconds(a) < seconds(b)
		case a.Manager != b.Manager:
			return a.Manager < b.Manager
		case a.APIVersion != b.APIVersion:
			return a.APIVersion < b.APIVersion
		default:
			return a.Subresource < b.Subresource
		}
	})
}

// SameOwners reports whether two lists of managedFields say the same, in whatever order.
func SameOwners(a, b []metav1.ManagedFieldsEntry) bool { return sameEntries(a, b) }

// sameEntries compares two lists in whatever order.
func sameEntries(a, b []metav1.ManagedFieldsEntry) bool {
	a, b = append([]metav1.ManagedFieldsEntry(nil), a...), append([]metav1.ManagedFieldsEntry(nil), b...)
	sortAsServer(a)
	sortAsServer(b)
	return equality.Semantic.DeepEqual(a, b)
}
