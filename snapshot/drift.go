package snapshot

import (
	"reflect"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// controllerFields are fields outside status that controllers of the control
// plane write at any time. A change of one is no drift, and no conflict either: a
// controller puts it right by itself.
var controllerFields = fieldpath.NewSet(
	fieldpath.MakePathOrDie("metadata", "annotations", "deployment.kubernetes.io/revision"),
)

// Drift lists the fields in which an object differs from its before-image, with
// who owns them now. The object's resourceVersion is not enough to tell: the
// status that a controller writes changes it too. Metadata of the server, status
// and what controllers are known to write do not count.
func Drift(before, live *unstructured.Unstructured) []FieldConflict {
	changed := fieldpath.NewSet()
	altered(nil, Strip(before).Object, Strip(live).Object, changed)
	changed = changed.Difference(controllerFields)
	var out []FieldConflict
	changed.Iterate(func(p fieldpath.Path) {
		out = append(out, FieldConflict{Path: p.String(), Managers: ownersBelow(live, p, func(string) bool { return false })})
	})
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}

// altered collects the fields in which two objects differ: values that are no
// objects, and objects that are empty.
func altered(path fieldpath.Path, before, after any, into *fieldpath.Set) {
	if reflect.DeepEqual(before, after) {
		return
	}
	b, bok := asMap(before)
	a, aok := asMap(after)
	if !bok || !aok || len(b)+len(a) == 0 {
		into.Insert(path.Copy())
		return
	}
	for _, name := range fieldNames(b, a) {
		altered(append(path.Copy(), fieldpath.PathElement{FieldName: &name}), field(b, name), field(a, name), into)
	}
}
