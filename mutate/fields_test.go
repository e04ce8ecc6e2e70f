package mutate_test

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// fields lists the paths of an entry of managedFields.
func fields(e metav1.ManagedFieldsEntry) []string {
	var out []string
	set := fieldpath.NewSet()
	if e.FieldsV1 != nil {
		if err := set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil {
			return []string{err.Error()}
		}
	}
	set.Iterate(func(p fieldpath.Path) { out = append(out, p.String()) })
	return out
}
