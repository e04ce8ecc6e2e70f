package mutate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate/kinds"
)

var (
	suspendField  = []string{"spec", "suspend"}
	templateField = []string{"spec", "template"}
)

// atRest has a rollback wait until the controller of a Job has stopped it, where the rollback of a later
// item has suspended it: until then the API server refuses another template.
func (c Change) atRest(live, desired *unstructured.Unstructured) error {
	if c.Ref.GVK.GroupKind() != kinds.Job || !fieldmerge.Differ(live, desired, templateField) {
		return nil
	}
	if suspended, _, _ := unstructured.NestedBool(live.Object, suspendField...); !suspended || !kinds.Runs(live.Object) {
		return nil
	}
	return c.fail(errclass.Retryable, errclass.NotInEffect, "restore", "waiting until its controller has stopped it: until then its template cannot be changed")
}
