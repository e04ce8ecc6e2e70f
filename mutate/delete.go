package mutate

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/internal/fault"
	"janus.io/janus/internal/target"
	"janus.io/janus/snapshot"
)

// deleteStrategy removes the target, and re-creates it from its before-image.
// Done means that the object is gone, not only that its deletion was accepted:
// one that waits for finalizers cannot be called back.
type deleteStrategy struct{}

// irreversible are the kinds whose deletion loses what a before-image does not
// hold, with what that is.
var irreversible = map[schema.GroupKind]string{
	target.NamespaceKind:            "everything in it would be lost",
	target.CRDKind:                  "every object of its kind would be lost",
	{Kind: "Node"}:                  "the node registers itself anew",
	{Kind: "PersistentVolumeClaim"}: "its data may be lost",
	{Group: "batch", Kind: "Job"}:   "it would run again",
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: "its certificate would be lost",
}

func (deleteStrategy) Admit(c Change, before *unstructured.Unstructured) error {
	if loss, ok := irreversible[c.Ref.GVK.GroupKind()]; ok {
		return c.fail(fault.Terminal, fault.Irreversible, "delete", "the deletion of a %s cannot be taken back: %s", c.Ref.GVK.Kind, loss).
			WithHint("delete it outside of a Transaction")
	}
	if before == nil {
		return nil
	}
	return c.admitAlive(before, "delete")
}

func (deleteStrategy) Try(ctx context.Context, c Change, before Baseline) (*unstructured.Unstructured, error) {
	if before.Absent() {
		return nil, nil
	}
	return nil, c.write(ctx, before, "dry-run the deletion of", func(meets Version) error {
		return c.remove(ctx, meets, true)
	})
}

func (deleteStrategy) Do(ctx context.Context, c Change, before Baseline) error {
	live, err := Read(ctx, c)
	switch {
	case err != nil:
		return err
	case before.Absent() && live == nil:
		return nil
	case before.Absent():
		return c.fail(fault.Conflict, fault.Drifted, "delete", "somebody else has created it since it was prepared").
			WithHint("theirs is kept; create the Transaction again to delete it")
	case sameObject(live, before.UID) && live.GetDeletionTimestamp() != nil:
		return c.awaitGone(live)
	}
	err = c.write(ctx, before, "delete", func(meets Version) error {
		return c.remove(ctx, meets, false)
	})
	if err != nil {
		return err
	}
	return c.confirmGone(ctx, before)
}

func (c Change) confirmGone(ctx context.Context, before Baseline) error {
	live, err := Read(ctx, c)
	if err != nil {
		return err
	}
	if sameObject(live, before.UID) {
		return c.awaitGone(live)
	}
	return nil
}

func (deleteStrategy) Observe(ctx context.Context, c Change, record snapshot.Record) (Finding, error) {
	live, err := Read(ctx, c)
	switch {
	case err != nil:
		return Diverged, err
	case record.Before == nil && live != nil:
		return NotApplied, nil
	case record.Before == nil || !sameObject(live, record.Before.GetUID()):
		return Applied, nil
	case live.GetDeletionTimestamp() != nil:
		return Applying, nil
	default:
		return NotApplied, nil
	}
}

func (deleteStrategy) Undo(ctx context.Context, c Change, record snapshot.Record) error {
	before := record.Before
	if before == nil {
		return nil
	}
	for range attempts {
		live, err := Read(ctx, c)
		if err != nil {
			return err
		}
		switch {
		case live == nil:
			live, err = c.recreate(ctx, before)
			if fault.Is(err, fault.AlreadyExists) {
				continue
			}
			if err != nil {
				return c.wrap(err, "re-create")
			}
		case sameObject(live, before.GetUID()) && live.GetDeletionTimestamp() == nil:
			return nil
		case sameObject(live, before.GetUID()):
			return c.awaitGone(live)
		case !c.owns(live) && !restored(live, before):
			return c.fail(fault.Conflict, fault.AlreadyExists, "re-create", "somebody else has created it since it was deleted").
				WithHint("theirs is kept; compare it with the before-image")
		}
		err = c.complete(ctx, live, before)
		if err == nil || !stale(err) {
			return c.wrap(err, "re-create")
		}
	}
	return c.fail(fault.Retryable, fault.StaleVersion, "re-create", "it changes faster than it can be written")
}

// recreate makes the object anew. One whose owner is gone, or came back under
// another uid, would be garbage the moment it exists: it is not made.
func (c Change) recreate(ctx context.Context, before *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for _, owner := range before.GetOwnerReferences() {
		there, err := c.OwnerThere(ctx, owner)
		if err != nil {
			return nil, err
		}
		if !there {
			return nil, c.fail(fault.Terminal, fault.OwnerGone, "re-create",
				"its owner %s %s (uid %s) is gone: the garbage collector would delete it at once", owner.Kind, owner.Name, owner.UID).
				WithHint("re-create it by hand from its before-image, without that owner reference")
		}
	}
	return c.Resource.Create(ctx, snapshot.ForCreate(before), metav1.CreateOptions{FieldManager: c.Manager})
}

// complete gives a re-created object the owners of its fields. Until that is done
// the item's manager is on the object, so a crash before it is seen.
func (c Change) complete(ctx context.Context, live, before *unstructured.Unstructured) error {
	if !c.owns(live) {
		return nil
	}
	var entries, status []metav1.ManagedFieldsEntry
	for _, e := range live.GetManagedFields() {
		switch {
		case c.ours(e.Manager):
		case e.Subresource == "status":
			status = append(status, e)
		default:
			// Somebody has written it since: what they own now stays theirs.
			nothing := &unstructured.Unstructured{Object: map[string]any{}}
			entries, _, err := snapshot.RestoreOwners(before, nothing, live, c.ours)
			if err != nil {
				return c.fail(fault.Terminal, fault.Invalid, "restore the field owners of", "they cannot be read: %w", err)
			}
			return c.setOwners(ctx, entries, live)
		}
	}
	for _, e := range before.GetManagedFields() {
		if e.Subresource != "status" {
			entries = append(entries, e)
		}
	}
	return c.setOwners(ctx, append(entries, status...), live)
}

// restored reports whether an object is the re-created one, complete already. What
// controllers have made of it since does not count.
func restored(live, before *unstructured.Unstructured) bool {
	return len(snapshot.Drift(snapshot.ForCreate(before), snapshot.ForCreate(live))) == 0 &&
		equality.Semantic.DeepEqual(writtenBy(live), writtenBy(before))
}

// writtenBy gives the entries of who has written an object, controllers aside.
func writtenBy(obj *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, e := range obj.GetManagedFields() {
		if e.Subresource != "status" && !controlPlane[e.Manager] {
			out = append(out, e)
		}
	}
	return out
}

func (deleteStrategy) Verbs() (change, compensation []string) {
	return []string{"get", "delete"}, []string{"create", "patch"}
}
