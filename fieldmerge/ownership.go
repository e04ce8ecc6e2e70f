package fieldmerge

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/value"
)

// Ownership is what a manager owns of an object.
type Ownership struct {
	Manager, Subresource, APIVersion string
	Operation                        metav1.ManagedFieldsOperationType
	// Time is when it last wrote or gave up one of its fields; nil if that is not recorded.
	Time *metav1.Time
	// Fields are the paths of its fields, sorted. An object or a list is among them only
	// where the manager owns nothing inside.
	Fields []string
}

// Ownerships lists who owns which fields of an object, in the order of its managedFields.
func Ownerships(obj *unstructured.Unstructured) ([]Ownership, error) {
	list, err := entriesOf(obj)
	if err != nil {
		return nil, err
	}
	out := make([]Ownership, 0, len(list))
	for _, e := range list {
		one := Ownership{Manager: e.Manager, Subresource: e.Subresource, APIVersion: e.APIVersion, Operation: e.Operation, Time: e.Time}
		var items []string
		e.set.Leaves().Iterate(func(p fieldpath.Path) {
			if isKeyOf(e.set, p) {
				items = append(items, p[:len(p)-1].String())
			} else {
				one.Fields = append(one.Fields, p.String())
			}
		})
		for _, item := range items {
			below := func(field string) bool { return strings.HasPrefix(field, item) }
			if !slices.ContainsFunc(one.Fields, below) {
				one.Fields = append(one.Fields, item)
			}
		}
		slices.Sort(one.Fields)
		out = append(out, one)
	}
	return out, nil
}

// isKeyOf reports whether a path is that of a key which its list item has in its own path
// already, such as name in containers[name="web"].name.
func isKeyOf(set *fieldpath.Set, path fieldpath.Path) bool {
	if len(path) < 2 {
		return false
	}
	field, item := path[len(path)-1].FieldName, path[:len(path)-1]
	keys := item[len(item)-1].Key
	if field == nil || keys == nil {
		return false
	}
	return set.Has(item) && slices.ContainsFunc(*keys, func(k value.Field) bool { return k.Name == *field })
}
