package apisim

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// mutate lets mutating admission change an object that is to be stored, once the field
// manager has seen it: nobody comes to own what is changed here. What it makes is
// defaulted again.
func (r *request) mutate(operation string, obj, old content) (content, error) {
	if r.options.Mutate == nil {
		return obj, nil
	}
	a := Admission{Access: r.access(), Operation: operation, DryRun: r.dryRun, Object: wrap(runtime.DeepCopyJSON(obj))}
	if old != nil {
		a.Old = wrap(old)
	}
	if !r.options.Mutate(a) {
		return obj, nil
	}
	a.Object.SetGroupVersionKind(r.kind.gvk)
	out, err := r.kind.shape.normalize(a.Object.Object)
	if err != nil {
		return nil, fmt.Errorf("read what admission has made of an object: %w", err)
	}
	return out, nil
}
