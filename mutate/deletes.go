package mutate

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/mutate/kinds"
)

// deletes says what controllers delete because of a change, for good and otherwise.
func (c Change) deletes(before, after *unstructured.Unstructured) (forGood string, warnings []string) {
	look := kinds.Of(c.Ref.GVK.GroupKind()).Deletes
	if look == nil || before == nil || after == nil {
		return "", nil
	}
	var all []string
	for _, found := range look(before.Object, after.Object) {
		if found.ForGood {
			all = append(all, found.Text)
		} else {
			warnings = append(warnings, c.warn(found.Text)...)
		}
	}
	return strings.Join(all, "; "), warnings
}
