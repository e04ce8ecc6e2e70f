package snapshot

import (
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// controllerFields are fields outside status that controllers of the control
// plane write at any time. A change of one is no drift.
var controllerFields = []*fieldpath.Set{
	fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", "deployment.kubernetes.io/revision")),
}

// Drift lists the fields in which an object differs from its before-image, with
// who owns them now. The object's resourceVersion is not enough to tell: the
// status that a controller writes changes it too. Metadata of the server, status
// and what controllers are known to write do not count.
func Drift(before, live *unstructured.Unstructured) []FieldConflict {
	changed := fieldpath.NewSet()
	altered(nil, Strip(before).Object, Strip(live).Object, changed)
	for _, known := range controllerFields {
		changed = changed.Difference(known)
	}
	var out []FieldConflict
	changed.Iterate(func(p fieldpath.Path) {
		out = append(out, FieldConflict{Path: p.String(), Managers: ownersBelow(live, p, func(string) bool { return false })})
	})
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}
