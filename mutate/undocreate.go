package mutate

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
	"janus.io/janus/internal/target"
	"janus.io/janus/snapshot"
)

// Undo deletes the object, if it is still what this change made. An object that
// others have written, or that has an owner by now, is theirs as well.
func (createStrategy) Undo(ctx context.Context, c Change, e Effect) (outcome.Undone, error) {
	var undone outcome.Undone
	for range attempts {
		var live *unstructured.Unstructured
		var err error
		c, live, err = c.locate(ctx)
		switch {
		case err != nil:
			return outcome.Undone{}, err
		case live == nil || !c.made(live, e.Created):
			return undone, c.giveVolumeBack(ctx, e)
		case live.GetDeletionTimestamp() != nil && held(live):
			return outcome.Undone{}, c.goOnSparing(ctx, live)
		case live.GetDeletionTimestamp() != nil:
			return outcome.Undone{}, c.awaitGone(live)
		}
		found, err := c.unmake(ctx, e, live)
		switch {
		case err == nil:
			undone.Overwritten = c.fields(found)
		case !stale(err):
			return outcome.Undone{}, c.wrap(c.kept(ctx, e, err), "delete")
		}
	}
	return outcome.Undone{}, c.fail(errclass.Retryable, errclass.StaleVersion, "delete", "it changes faster than it can be deleted")
}

// unmake deletes the object, unless it is not for this change alone to delete. It returns
// what others had written, if that is no reason not to.
func (c Change) unmake(ctx context.Context, e Effect, live *unstructured.Unstructured) ([]fieldmerge.FieldConflict, error) {
	found, err := c.writtenByOthers(ctx, e.Record, live)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 && !e.Overwrite {
		return nil, c.shared(found)
	}
	for _, admit := range []func(context.Context, *unstructured.Unstructured) error{c.admitEmpty, c.admitUnused} {
		if err := admit(ctx, live); err != nil {
			return nil, err
		}
	}
	t, err := c.adoption(ctx, live)
	if err != nil {
		return nil, err
	}
	if err := c.admitBelow(ctx, t); err != nil {
		return nil, err
	}
	if len(t.adopted) > 0 {
		return found, c.deleteSparing(ctx, live, t)
	}
	if err := c.Fences.confirm(ctx, false); err != nil {
		return nil, err
	}
	return found, c.remove(ctx, VersionOf(live), metav1.DeletePropagationBackground, false)
}

// kept is the error because of which an object is not deleted. An earlier attempt may have
// put a finalizer on it, which would be in the way of anyone who deletes it.
func (c Change) kept(ctx context.Context, e Effect, cause error) error {
	if class := errclass.ClassOf(cause); c.Environment.Dependants == nil || class != errclass.Terminal && class != errclass.Conflict {
		return cause
	}
	_, live, err := c.locate(ctx)
	if err == nil && live != nil && c.made(live, e.Created) && live.GetDeletionTimestamp() == nil {
		err = c.letGo(ctx, live)
	}
	if err != nil && !errclass.Is(err, errclass.AccessDenied) {
		return err
	}
	return cause
}

// writtenByOthers lists what makes an object that this change made another client's
// too: fields that others own, the control plane and writers of the status aside,
// and owners that it did not have. Where the field owners were reset, values tell.
func (c Change) writtenByOthers(ctx context.Context, record snapshot.Record, live *unstructured.Unstructured) ([]fieldmerge.FieldConflict, error) {
	found, err := fieldmerge.Foreign(live, func(manager string) bool {
		return c.Names.ours(manager) || c.Names.sibling(manager) || fieldmerge.ControlPlane(manager)
	})
	if err != nil {
		return nil, c.unreadableOwners(err)
	}
	found = together(found, fieldmerge.NewOwners(live, record.After, c.Names.ours))
	if c.Names.owns(live) {
		return found, nil
	}
	if record.After == nil {
		return together(found, []fieldmerge.FieldConflict{{Path: ".metadata.managedFields"}}), nil
	}
	images, err := c.images(ctx, record.After, nil, live)
	if err != nil {
		return nil, err
	}
	for _, f := range images.Drift() {
		if !f.ByControllers() && (len(f.Managers) > 0 || !c.madeUp(f.Path, f.Before)) {
			found = together(found, []fieldmerge.FieldConflict{f})
		}
	}
	return found, nil
}

// together joins lists of fields; one that is in both is named once.
func together(list, more []fieldmerge.FieldConflict) []fieldmerge.FieldConflict {
	known := map[string]bool{}
	for _, f := range list {
		known[f.Path] = true
	}
	for _, f := range more {
		if !known[f.Path] {
			list = append(list, f)
		}
	}
	return list
}

func (c Change) shared(found []fieldmerge.FieldConflict) error {
	fields := c.fields(found)
	err := c.fail(errclass.Conflict, errclass.FieldConflict, "delete", "others have written it since it was created: %s", listed(fields)).
		WithHint("it is kept; delete it by hand if it is not wanted")
	err.Fields = fields
	return err
}

// admitEmpty refuses to delete a Namespace or a CRD that this change made and that
// others have put objects into. What this Transaction put there is rolled back
// before. Nothing can keep another client from adding an object after the look.
func (c Change) admitEmpty(ctx context.Context, live *unstructured.Unstructured) error {
	if c.Environment.Contents == nil {
		return nil
	}
	found, err := c.Environment.Contents(ctx, c.Ref.GVK.GroupKind(), live)
	if err != nil {
		return err
	}
	switch {
	case len(found.Stay) > 0:
		return c.fail(errclass.Conflict, errclass.NotEmpty, "delete", "it holds objects that this Transaction did not make: %s", strings.Join(found.Stay, ", ")).
			WithHint("it is kept; delete it by hand if they are not wanted")
	case len(found.Leave) > 0:
		return c.fail(errclass.Retryable, errclass.Terminating, "delete", "waiting until objects in it that are being deleted are gone: %s", strings.Join(found.Leave, ", "))
	}
	return nil
}

// remove deletes exactly the object that was seen. A Namespace that is gone, or the
// one that the object was in, is to be found out by another look, as any other object
// is.
func (c Change) remove(ctx context.Context, seen Version, propagation metav1.DeletionPropagation, dry bool) error {
	err := c.client().Delete(ctx, c.Ref.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &seen.UID, ResourceVersion: &seen.ResourceVersion},
		PropagationPolicy: &propagation, DryRun: dryRun(dry),
	})
	if errclass.Is(err, errclass.NamespaceNotFound) {
		return c.fail(errclass.Terminal, errclass.NotFound, "delete", "it does not exist")
	}
	return err
}

// awaitGone is the wait for the finalizers of an object that is being deleted.
func (c Change) awaitGone(live *unstructured.Unstructured) error {
	err := c.fail(errclass.Retryable, errclass.Terminating, "delete", "it is being deleted%s", waitsFor(live))
	err.Awaited = []errclass.Awaited{{ID: c.Ref.ID()}}
	if c.Ref.GVK.GroupKind() == target.NamespaceKind && undiscovered(live) != "" {
		err.Refuser = errclass.ByDeadAPI
	}
	return err
}
