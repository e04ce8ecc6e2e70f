package mutate

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
)

// follow is the change with what other clients have written, since it was prepared, to fields
// that it does not change, such as the claim that a volume is bound to.
func (w write) follow(ctx context.Context, image, live *unstructured.Unstructured) (Change, error) {
	following, wanted := w.Change, w.body(Version{})
	wanted.SetManagedFields(image.GetManagedFields())
	images, err := w.images(ctx, image, nil, live)
	if err != nil {
		return following, err
	}
	others := slices.DeleteFunc(images.Drift(), func(f fieldmerge.FieldConflict) bool { return f.SameBefore(wanted) })
	if len(others) > 0 {
		return following, w.drifted(w.op, others)
	}
	desired, err := w.onto(ctx, wanted, image, live)
	if err != nil {
		return following, err
	}
	if err := w.reowned(images, func(f fieldmerge.FieldConflict) bool { return f.Same(desired) }); err != nil {
		return following, err
	}
	following.Content = fieldmerge.Strip(desired).Object
	if _, writesStatus := w.Content["status"]; writesStatus {
		following.Content["status"] = desired.Object["status"]
	}
	return following, following.admitUndo(ctx, live, desired)
}

// onto takes the step from the image to what is wanted on the live object, as if the change had
// made the step back and were restored.
func (w write) onto(ctx context.Context, wanted, image, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	made := fieldmerge.Strip(image)
	if _, writesStatus := w.Content["status"]; writesStatus {
		made.Object["status"] = image.Object["status"]
	}
	images, err := w.images(ctx, wanted, made, live)
	if err != nil {
		return nil, err
	}
	images.HandedOver = true
	step := images.Restore()
	if others := slices.Concat(step.Conflicts, step.Reclaimed); len(others) > 0 {
		return nil, w.drifted(w.op, others)
	}
	return step.Desired, nil
}
