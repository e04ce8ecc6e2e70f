package mutate

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
)

// idle reports whether there is nothing to write: the change would leave the target as it
// is, and that is still what it was when that was found out. A write all the same would
// make two versions of it, one for the change and one for the hand-over of its fields, and an
// Update would undo what the control plane has made of the target because of another change.
func (w write) idle(ctx context.Context) (bool, error) {
	if !w.before.Idle {
		return false, nil
	}
	live, err := Read(ctx, w.Change)
	if err != nil || w.before.Absent() {
		return false, err
	}
	if VersionOf(live) == w.before.Version {
		return true, nil
	}
	w.op = "look at"
	_, _, err = w.refresh(ctx)
	return err == nil, nil // The write finds out what else has changed, and says so.
}

// leavesAsIs reports whether a change that a dry run answered with after, and a commit of
// it, leave the target as it is: every value, and every owner of a field.
func (c Change) leavesAsIs(ctx context.Context, to Ownership, before, after *unstructured.Unstructured) (bool, error) {
	if before == nil || after == nil || !reflect.DeepEqual(unversioned(before), unversioned(after)) {
		return false, nil
	}
	entries, changed, err := to.handedOver(ctx, c, before, after)
	if err != nil {
		return false, err
	}
	if !changed {
		entries = after.GetManagedFields()
	}
	return fieldmerge.SameOwners(entries, before.GetManagedFields()), nil
}

// unversioned is an object without what a write changes in any case.
func unversioned(obj *unstructured.Unstructured) map[string]any {
	out := fieldmerge.Strip(obj)
	if status, there := obj.Object["status"]; there {
		out.Object["status"] = status
	}
	return out.Object
}
