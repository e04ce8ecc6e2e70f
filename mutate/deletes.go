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
	consequences := look(before.Object, after.Object)
	if c.Ref.GVK.GroupKind() == kinds.Job && c.Environment.Now != nil {
		consequences = append(consequences, kinds.FailedJob(before.Object, after.Object, c.Environment.Now())...)
	}
	var all []string
	for _, found := range consequences {
		if found.ForGood {
			all = append(all, found.Text)
		} else {
			warnings = append(warnings, c.warn(found.Text)...)
		}
	}
	return strings.Join(all, "; "), warnings
}
