package mutate

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

// deleteStrategy removes the target, and re-creates it from its before-image.
// Done means that the object is gone, not only that its deletion was accepted:
// one that waits for finalizers cannot be called back.
type deleteStrategy struct{}

func (deleteStrategy) Admit(ctx context.Context, c Change, before *unstructured.Unstructured) ([]string, error) {
	warnings, err := c.admitLoss(ctx, before)
	if err != nil || before == nil {
		return nil, err
	}
	if err := c.admitAlive(before, "delete"); err != nil {
		return nil, err
	}
	doubts, err := c.rehearseCreation(ctx, before)
	if err != nil {
		return nil, err
	}
	return append(append(warnings, c.cautions(before)...), doubts...), nil
}

func (deleteStrategy) Try(ctx context.Context, c Change, before Baseline) (*unstructured.Unstructured, error) {
	if before.Absent() {
		return nil, nil
	}
	_, err := write{Change: c, before: before, op: "dry-run the deletion of"}.send(ctx, func(c Change, meets Version) (*unstructured.Unstructured, error) {
		return nil, c.remove(ctx, meets, c.Options.propagation(), true)
	})
	if err != nil {
		return nil, err
	}
	image, err := before.Image(ctx)
	if err != nil || image == nil {
		return nil, err
	}
	return nil, c.rehearse(ctx, image)
}

func (deleteStrategy) Do(ctx context.Context, c Change, before Baseline) (Done, error) {
	err := c.delete(ctx, before)
	return Done{Unchanged: err == nil && before.Absent()}, err
}

// delete deletes the target, and returns nil once it is gone.
func (c Change) delete(ctx context.Context, before Baseline) error {
	live, err := Read(ctx, c)
	switch {
	case err != nil:
		return err
	case before.Absent() && live == nil:
		return nil
	case before.Absent():
		return c.fail(errclass.Conflict, errclass.Drifted, "delete", "another client has created it since it was prepared").
			WithHint("theirs is kept; create the Transaction again to delete it")
	case sameObject(live, before.UID) && live.GetDeletionTimestamp() != nil:
		if c.Fences.Fresh {
			// A rollback would re-create what another client has wanted gone.
			if err := c.unlessBereaved(ctx, before, c.deleted("delete", live)); err != nil {
				return err
			}
		}
		return c.awaitGone(live)
	}
	if c.Options.Inverts && live != nil {
		// It may have adopted something since it was prepared, or others use it now.
		if _, err := c.admitUncreate(ctx, live); err != nil {
			return err
		}
	}
	_, err = write{Change: c, before: before, op: "delete"}.send(ctx, func(c Change, meets Version) (*unstructured.Unstructured, error) {
		return nil, c.remove(ctx, meets, c.Options.propagation(), false)
	})
	if errclass.Is(err, errclass.Drifted) {
		err = c.unlessBereaved(ctx, before, err)
	}
	if err != nil {
		return err
	}
	return c.accepted(c.confirmGone(ctx, before))
}

// accepted is an error met after the API server has accepted the deletion. Whatever it
// says, it does not say that the target is as it was.
func (c Change) accepted(err error) error {
	if class := errclass.ClassOf(err); err == nil || class != errclass.Terminal && class != errclass.Conflict {
		return err
	}
	return c.fail(errclass.Unknown, errclass.ReasonOf(err), "delete", "its deletion was accepted, but its outcome is not known: %w", err)
}

// unlessBereaved tells a target that went, or lost a reference, because an earlier change
// of the Transaction deleted its owner, which is as it should be, from one that another
// client has written or deleted.
func (c Change) unlessBereaved(ctx context.Context, before Baseline, drift error) error {
	if c.Environment.OwnerRefs == nil {
		return drift
	}
	image, err := before.Image(ctx)
	if err != nil || image == nil {
		return err
	}
	lost := false
	left, err := fieldmerge.Reown(image, func(uid types.UID) types.UID {
		if c.Environment.OwnerRefs.Deleted(uid) {
			lost = true
			return ""
		}
		return uid
	})
	if err != nil {
		return c.unreadableOwners(err)
	}
	if !lost {
		return drift
	}
	live, err := Read(ctx, c)
	switch {
	case err != nil:
		return err
	case live != nil && !sameObject(live, before.UID):
		return drift
	case live == nil, live.GetDeletionTimestamp() != nil:
		return nil
	}
	images, err := c.images(ctx, left, nil, live)
	if err != nil {
		return err
	}
	if len(images.Drift()) > 0 {
		return drift
	}
	if err := c.Fences.confirm(ctx, true); err != nil {
		return err
	}
	return c.wrap(c.remove(ctx, VersionOf(live), c.Options.propagation(), false), "delete")
}

func (c Change) confirmGone(ctx context.Context, before Baseline) error {
	live, err := c.readSince(ctx, before.Version)
	if err != nil {
		return err
	}
	if sameObject(live, before.UID) {
		return c.awaitGone(live)
	}
	return nil
}

func (deleteStrategy) Observe(ctx context.Context, c Change, e Effect) (outcome.Finding, error) {
	before := e.Record.Before
	live, err := c.readSince(ctx, VersionOf(before))
	switch {
	case err != nil:
		return outcome.Diverged, err
	case before == nil && live != nil:
		return outcome.NotApplied, nil
	case e.Undoing && live != nil && !sameObject(live, before.GetUID()):
		return outcome.Diverged, nil // It may have been re-created, without all that belongs to it.
	case before == nil || !sameObject(live, before.GetUID()):
		return outcome.Applied, nil
	case live.GetDeletionTimestamp() != nil:
		return outcome.Applying, nil
	default:
		return outcome.NotApplied, nil
	}
}

func (deleteStrategy) Verbs() (change, compensation []string) {
	return []string{"get", "delete"}, []string{"create", "patch"}
}
