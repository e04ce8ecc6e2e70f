package mutate

import (
	"cmp"
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
	"janus.io/janus/snapshot"
)

func (deleteStrategy) Undo(ctx context.Context, c Change, e Effect) (outcome.Undone, error) {
	if e.Record.Before == nil {
		return outcome.Undone{}, nil
	}
	made := e.Created // by a call before this one
	for range attempts {
		undone, err := c.remake(ctx, e, made)
		made = cmp.Or(undone.Recreated, made)
		if !stale(err) || errors.Is(err, errUnrecorded) {
			return undone, c.wrap(err, "re-create")
		}
	}
	return outcome.Undone{}, c.fail(errclass.Retryable, errclass.StaleVersion, "re-create", "it changes faster than it can be written")
}

// remake re-creates the object, or resumes what an earlier attempt has begun:
// until its fields have their owners, and it its, the item's manager is on the
// object. made is the uid of what was re-created before, on record or not.
func (c Change) remake(ctx context.Context, e Effect, made types.UID) (outcome.Undone, error) {
	before := e.Record.Before
	live, err := Read(ctx, c)
	if err == nil && made != "" && !sameObject(live, made) {
		return outcome.Undone{}, c.deletedAgain("")
	}
	if err == nil && sameObject(live, before.GetUID()) && live.GetDeletionTimestamp() == nil {
		live, err = Read(ctx, c) // One answer may be of before the deletion.
	}
	if err != nil {
		return outcome.Undone{}, err
	}
	if sameObject(live, before.GetUID()) {
		if live.GetDeletionTimestamp() == nil {
			return outcome.Undone{}, nil
		}
		return outcome.Undone{}, c.awaitGone(live)
	}
	l, err := c.lineage(ctx, before)
	if err != nil {
		return outcome.Undone{}, err
	}
	switch {
	case live == nil:
		live, err = c.recreate(ctx, l.wanted)
	case !sameObject(live, made) && !c.remade(live, l.wanted):
		if !c.standIn(live) {
			err = c.occupied(ctx, before)
			break
		}
		live, err = c.replace(ctx, live, l.wanted, e.Settled)
		l.replaced = true
	case live.GetDeletionTimestamp() != nil:
		err = c.deletedAgain(waitsFor(live))
	}
	if err != nil {
		return outcome.Undone{}, err
	}
	undone := outcome.Undone{Recreated: live.GetUID()}
	if e.Created != live.GetUID() && hollow(l.wanted) && c.Names.marked(live) {
		return undone, c.fail(errclass.Retryable, errclass.StaleVersion, "re-create", "%w", errUnrecorded)
	}
	notes, err := c.complete(ctx, live, l)
	if err != nil {
		return undone, err
	}
	if err := c.reunite(ctx, before.GetUID()); err != nil {
		return undone, err
	}
	if len(l.gone) > 0 {
		return undone, c.orphaned(l.gone)
	}
	lost, err := c.lost(ctx, before)
	undone.Notes = append(append(l.notes, notes...), lost...)
	return undone, err
}

// errUnrecorded says that an object bears the mark of its re-creation, and nothing else
// would tell whose it is: the mark stays until the uid is on record.
var errUnrecorded = errors.New("its uid has to be recorded before it is complete")

// deletedAgain is the conflict with a deletion of what was re-created. It is not made
// once more.
func (c Change) deletedAgain(waits string) error {
	return c.fail(errclass.Conflict, errclass.Drifted, "re-create", "another client has deleted it since it was re-created%s", waits).
		WithHint("if it is still wanted, re-create it from its before-image")
}

// occupied is the conflict with an object that another client has made in place of
// the deleted one. What that one owned belongs to it, as if it had been there before.
func (c Change) occupied(ctx context.Context, before *unstructured.Unstructured) error {
	if err := c.reunite(ctx, before.GetUID()); err != nil {
		return err
	}
	return c.fail(errclass.Conflict, errclass.AlreadyExists, "re-create", "another client has created it since it was deleted").
		WithHint("theirs is kept; compare it with the before-image")
}

// makeRoom does what has to come before an object that was deleted is created again: it frees the
// volume of a claim, and makes sure that a token Secret would stay.
func (c Change) makeRoom(ctx context.Context, wanted *unstructured.Unstructured, dry bool) error {
	if err := c.admitToken(ctx, wanted); err != nil {
		return err
	}
	return c.freeVolume(ctx, wanted, dry)
}

func (c Change) recreate(ctx context.Context, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := c.makeRoom(ctx, wanted, false); err != nil {
		return nil, err
	}
	if err := c.Fences.mayCreate(ctx); err != nil {
		return nil, err
	}
	body := snapshot.ForCreate(wanted)
	if hollow(wanted) {
		body.SetAnnotations(map[string]string{MarkerAnnotation: c.Names.Marker})
	}
	live, err := c.client().Create(ctx, body, metav1.CreateOptions{FieldManager: c.Names.Manager, FieldValidation: metav1.FieldValidationStrict})
	switch {
	case errclass.Is(err, errclass.AlreadyExists):
		return nil, c.fail(errclass.Retryable, errclass.StaleVersion, "re-create", "it did not exist a moment ago and does now")
	case errclass.Unserved(err):
		return nil, c.fail(errclass.Retryable, errclass.KindNotFound, "re-create", "the API server does not serve %s in %s", c.Ref.GVK.Kind, c.Ref.GVK.GroupVersion()).
			WithHint("its CRD is needed, with that version served")
	case errclass.Is(err, errclass.NotFound), errclass.Is(err, errclass.NamespaceNotFound):
		return nil, c.lacks(err, wanted)
	}
	return live, c.wrap(err, "re-create")
}

// complete gives a re-created object what a creation cannot: references to owners
// that have come back since, its status, and the owners of its fields. Each step is
// a write of its own under the resourceVersion of the one before; the last one takes
// the item's manager off, unless something is still to come or is not as it was.
func (c Change) complete(ctx context.Context, live *unstructured.Unstructured, l lineage) (notes []string, err error) {
	ours := c.Names.owns(live) || l.replaced
	if !ours && !restored(live, l.wanted) {
		return nil, nil // It was complete before others wrote it.
	}
	if err := c.Fences.confirm(ctx, false); err != nil {
		return nil, err
	}
	live, joined, err := c.join(ctx, live, l.wanted)
	if err != nil || !ours && !joined && len(l.pending) == 0 {
		return nil, err
	}
	status := statusKept
	var denied error
	if ours {
		live, status, err = c.restoreStatus(ctx, live, l.wanted)
		if denied = err; err != nil && !errclass.Is(err, errclass.AccessDenied) {
			return nil, err
		}
	}
	entries, err := c.ownersOf(live, l.wanted, status)
	if err != nil {
		return nil, err
	}
	images, err := c.images(ctx, nil, nil, live)
	if err != nil {
		return nil, err
	}
	images.Status = status == statusRestored
	values, marks := c.remadeUnlike(images, l.wanted)
	if denied != nil || len(l.pending) > 0 || len(values) > 0 {
		entries = append(entries, c.unfinished(live))
	}
	stored, err := c.setOwners(ctx, entries, live)
	if err != nil {
		return nil, err
	}
	later, stamped := images.Strayed(unmarked(live), unmarked(stored))
	values, marks = together(values, later), together(marks, stamped)
	switch {
	case len(values) > 0:
		return nil, c.altered("re-create", values, nil)
	case status == statusTheirs:
		notes = []string{"its status is what others have written since it was re-created"}
	}
	return append(append(notes, c.stamped(marks)...), ownerless(stored, l.wanted)...), denied
}

// join adds the references to owners that live lacks.
func (c Change) join(ctx context.Context, live, wanted *unstructured.Unstructured) (*unstructured.Unstructured, bool, error) {
	has := map[types.UID]bool{}
	for _, owner := range live.GetOwnerReferences() {
		has[owner.UID] = true
	}
	missing := false
	for _, owner := range wanted.GetOwnerReferences() {
		missing = missing || !has[owner.UID]
		delete(has, owner.UID)
	}
	if !missing {
		return live, false, nil
	}
	list, _, _ := unstructured.NestedSlice(wanted.Object, "metadata", "ownerReferences")
	present, _, _ := unstructured.NestedSlice(live.Object, "metadata", "ownerReferences")
	for _, reference := range present {
		owner, _ := reference.(map[string]any)
		if uid, _ := owner["uid"].(string); has[types.UID(uid)] {
			list = append(list, reference)
		}
	}
	body, err := conditional(map[string]any{"metadata": map[string]any{"ownerReferences": list}}, live)
	if err != nil {
		return nil, false, err
	}
	live, err = c.mergePatch(ctx, body)
	return live, true, err
}

// ownersOf returns the entries of managedFields that a re-created object is to have:
// those of the before-image, and what others have written since stays theirs.
func (c Change) ownersOf(live, wanted *unstructured.Unstructured, status statusState) ([]metav1.ManagedFieldsEntry, error) {
	var entries []metav1.ManagedFieldsEntry
	live, err := withoutStandIns(live, wanted)
	if err != nil {
		return nil, c.unreadableOwners(err)
	}
	if c.writtenSince(live) {
		nothing := &unstructured.Unstructured{Object: map[string]any{}}
		all, _, err := fieldmerge.Images{Before: wanted, After: nothing, Live: live, Ours: c.Names.ours}.RestoreOwners()
		if err != nil {
			return nil, c.unreadableOwners(err)
		}
		entries = exceptStatus(all)
	} else {
		entries = exceptStatus(wanted.GetManagedFields())
	}
	from := live
	if status == statusRestored {
		from = wanted
	}
	for _, e := range from.GetManagedFields() {
		if e.Subresource == "status" && !c.Names.ours(e.Manager) {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// writtenSince reports whether anyone but this item owns fields, status aside.
func (c Change) writtenSince(live *unstructured.Unstructured) bool {
	for _, e := range exceptStatus(live.GetManagedFields()) {
		if !c.Names.ours(e.Manager) {
			return true
		}
	}
	return false
}

func exceptStatus(list []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, e := range list {
		if e.Subresource != "status" {
			out = append(out, e)
		}
	}
	return out
}

// unfinished is an entry by which a later attempt knows the object as one that this
// item has re-created and not completed. It outlives whatever others write.
func (c Change) unfinished(live *unstructured.Unstructured) metav1.ManagedFieldsEntry {
	e := metav1.ManagedFieldsEntry{
		Manager: c.Names.Manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: live.GetAPIVersion(),
		FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{},
	}
	e.FieldsV1.SetRawBytes([]byte(`{"f:metadata":{"f:annotations":{"f:` + MarkerAnnotation + `":{}}}}`))
	return e
}
