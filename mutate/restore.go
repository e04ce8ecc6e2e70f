package mutate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
	"janus.io/janus/snapshot"
)

// observeWrite checks whether an Update or a Patch is in effect. The resource
// version of the before-image proves that nothing was written; the item's field
// manager proves that its change was. A write that only removes fields, or that
// changes an object without tracked fields, leaves no manager behind: then the
// fields of the change tell. Values that another client has written alike prove nothing.
// A Patch applies: where fields are tracked it leaves its manager, whatever it changes.
func (c Change) observeWrite(ctx context.Context, e Effect, applies bool) (outcome.Finding, error) {
	live, err := Read(ctx, c)
	if err != nil {
		return outcome.Diverged, err
	}
	record, _, err := c.sinceCreatedAgain(e.Record)
	if err != nil {
		return outcome.Diverged, err
	}
	before := record.Before
	switch {
	case before == nil:
		return outcome.Diverged, c.incomplete(record)
	case !sameObject(live, before.GetUID()):
		return outcome.Diverged, nil
	case live.GetResourceVersion() == before.GetResourceVersion():
		return outcome.NotApplied, nil
	case c.Names.owns(live) && !e.Undoing:
		return outcome.Applied, nil
	case record.After == nil:
		return outcome.Diverged, nil
	}
	images, err := c.images(ctx, before, record.After, live)
	if err != nil {
		return outcome.Diverged, err
	}
	images.Took = record.Took
	switch stand := images.Stand(); {
	case c.Names.owns(live) && (stand == fieldmerge.AtAfter || unrestored(images)):
		return outcome.Applied, nil
	case c.Names.owns(live):
		return outcome.Diverged, nil // Its values have been restored, and their owners have not.
	case stand == fieldmerge.AtAfter && applies && fieldmerge.Tracked(live):
		// The change alters nothing, and its manager would be there: it is made so that
		// a request which was sent before, and lands late, finds all as it leaves it.
		return outcome.NotApplied, nil
	case stand == fieldmerge.AtAfter && !applies && !fieldmerge.Tracked(live) && images.Replaceable():
		return outcome.Diverged, nil // It leaves nothing but what it sets. Here is more, and nobody knows whose.
	case stand == fieldmerge.AtAfter:
		return outcome.Applied, nil
	case stand == fieldmerge.AtBefore:
		return outcome.NotApplied, nil
	default:
		return outcome.Diverged, nil
	}
}

// unrestored reports whether a field is to be restored and none has been: values are
// restored together.
func unrestored(images fieldmerge.Images) bool {
	return !images.Restored() && len(fieldmerge.MergePatch(images.Live.Object, images.Restore().Desired.Object)) > 0
}

// restore undoes an Update or a Patch: first the values, then the owners,
// each under the resourceVersion just read. The API server does not take both in
// one request. A crash between the two is harmless: the next call sees that the
// values are restored and goes on with the owners.
func (c Change) restore(ctx context.Context, e Effect) (outcome.Undone, error) {
	if e.Record.Before == nil || e.Record.After == nil {
		return outcome.Undone{}, c.incomplete(e.Record)
	}
	var so restoring
	var err error
	if e.Record, so.notes, err = c.sinceCreatedAgain(e.Record); err != nil {
		return outcome.Undone{}, err
	}
	var overwritten []errclass.Field
	looked, seen := false, e.Seen
	for range attempts {
		undone, wrote, err := c.restoreOnce(ctx, e, seen, &so)
		seen = nil
		overwritten = joined(overwritten, undone.Overwritten)
		undone.Overwritten = overwritten
		switch {
		case stale(err):
		case !wrote && !looked && (err == nil || errclass.Is(err, errclass.FieldConflict)):
			// Nothing was written that would have failed if what was read is not so any
			// more. One answer may be of before the change.
			looked = true
		default:
			return undone, c.wrap(err, "restore")
		}
	}
	return outcome.Undone{Overwritten: overwritten}, c.fail(errclass.Retryable, errclass.StaleVersion, "restore", "it changes faster than it can be written")
}

// joined adds to a list the fields that it does not name yet. What was overwritten
// cannot be seen again by the attempt that follows.
func joined(list, more []errclass.Field) []errclass.Field {
	for _, f := range more {
		if !slices.ContainsFunc(list, func(known errclass.Field) bool { return known.Path == f.Path }) {
			list = append(list, f)
		}
	}
	return list
}

// restoreOnce looks and restores once, from what was seen if it was. It tells whether it
// has written anything. Values that were restored before are not restored again: what has
// become of them since is another client's.
func (c Change) restoreOnce(ctx context.Context, e Effect, seen *unstructured.Unstructured, so *restoring) (undone outcome.Undone, wrote bool, err error) {
	record := e.Record
	live, err := c.restorable(ctx, e, seen)
	if err != nil {
		return outcome.Undone{}, false, err
	}
	images, err := c.images(ctx, record.Before, record.After, live)
	if err != nil {
		return outcome.Undone{}, false, err
	}
	images.Took, images.Force = record.Took, e.Overwrite
	wanted := images.Restore()
	desired := wanted.Desired
	earlier := so.restored == nil && !e.Overwrite && images.Restored()
	if earlier {
		so.restored = &wanted // by a call that did not get to the owners
	}
	if err := cmp.Or(c.spare(ctx, e, live, desired, so, earlier), c.atRest(live, desired)); err != nil {
		return outcome.Undone{}, false, err
	}
	// To look may have taken long, and would find what another process has restored as
	// another client has written it since.
	if err := c.Fences.confirm(ctx, false); err != nil {
		return outcome.Undone{}, false, err
	}
	if so.restored != nil {
		wanted = *so.restored
	} else if images.Live, err = c.patchValues(ctx, live, desired); err != nil {
		return outcome.Undone{}, false, err
	} else if images.Live != live {
		so.restored = &wanted
	}
	// What was seen to be restored may have been seen before the change.
	if images.Live != live && (len(wanted.Conflicts) == 0 || e.Overwrite) && len(so.spared) == 0 {
		c.Fences.restored()
	}
	so.look(c, images, live, desired, wanted.Conflicts)
	if e.Overwrite {
		undone.Overwritten = c.fields(wanted.Conflicts)
	}
	owned, err := c.patchOwners(ctx, images, together(so.values, so.spared))
	wrote = owned != nil || images.Live != live
	if err != nil {
		return undone, wrote, err
	}
	if owned != nil {
		so.compare(images, images.Live, owned, wanted.Conflicts)
	}
	undone.Reclaimed = c.fields(wanted.Reclaimed)
	if owned != nil {
		images.Live = owned
	}
	so.added(images, together(wanted.Conflicts, so.spared))
	if len(so.values) > 0 {
		return undone, wrote, c.altered("restore", so.values, together(wanted.Conflicts, so.spared))
	}
	undone.Notes = slices.Concat(so.notes, c.stamped(so.marks), ownerless(owned, record.Before))
	if len(wanted.Conflicts) > 0 && !e.Overwrite {
		return undone, wrote, c.conflicting(wanted.Conflicts, so)
	}
	if len(so.spared) > 0 {
		return undone, wrote, c.sparing(so)
	}
	return undone, wrote, nil
}

// restorable returns the target as it is, read unless it was seen. It refuses one that is not
// the object that was changed, or that is being deleted.
func (c Change) restorable(ctx context.Context, e Effect, seen *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := seen
	if live == nil {
		var err error
		if live, err = Read(ctx, c); err != nil {
			return nil, err
		}
	}
	if !sameOrRecreated(live, e) {
		return nil, c.cannotRestore(live, e.Record)
	}
	if live.GetDeletionTimestamp() != nil {
		return nil, c.fail(errclass.Conflict, errclass.Drifted, "restore", "another client has deleted it since it was changed%s", waitsFor(live))
	}
	return live, nil
}

// incomplete refuses a record that lacks an image. None is made of an Update or a
// Patch, but records are read from where others could have written them.
func (c Change) incomplete(record snapshot.Record) error {
	return c.fail(errclass.Terminal, errclass.BeforeImageLost, "restore", "the record of item %d lacks what the target was before, or after, the change", record.Item).
		WithHint("compare the target with the before-image and correct it by hand")
}

// sameOrRecreated reports whether live is the object that was changed, or the one
// that this Transaction made in its place when it rolled a later Delete back.
func sameOrRecreated(live *unstructured.Unstructured, e Effect) bool {
	return sameObject(live, e.Record.Before.GetUID()) || e.Recreated != "" && sameObject(live, e.Recreated)
}

func (c Change) cannotRestore(live *unstructured.Unstructured, record snapshot.Record) error {
	if live == nil {
		return c.fail(errclass.Conflict, errclass.Drifted, "restore", "another client has deleted it since it was changed").
			WithHint(fmt.Sprintf("if it is still wanted, re-create it from its before-image (item %d)", record.Item))
	}
	return c.fail(errclass.Conflict, errclass.Drifted, "restore", "another client has deleted and re-created it since it was changed").
		WithHint("theirs is kept")
}

// conflicting is the error of fields that others have written. It names those beside that were
// spared.
func (c Change) conflicting(found []fieldmerge.FieldConflict, so *restoring) error {
	fields := c.fields(found)
	err := c.fail(errclass.Conflict, errclass.FieldConflict, "restore", "another client has written fields since they were changed: %s", listed(fields)).
		WithHint("their values are kept and every other field is restored; compare with the before-image and correct these by hand")
	err.Fields = fields
	if len(so.spared) > 0 {
		spared := c.sparing(so)
		err.Err = fmt.Errorf("%w; %w", err.Err, spared.Err)
		err.Fields = append(fields, spared.Fields...)
	}
	return err
}

// patchValues writes the difference between live and what is wanted, if there is
// one, and returns the object as it is then.
func (c Change) patchValues(ctx context.Context, live, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	patch := fieldmerge.MergePatch(live.Object, wanted.Object)
	if len(patch) == 0 {
		return live, nil
	}
	if setsNull(live.Object, wanted.Object) {
		return c.replaceValues(ctx, live, wanted)
	}
	body, err := conditional(patch, live)
	if err != nil {
		return nil, err
	}
	return c.mergePatch(ctx, body)
}

// conditional adds the uid and resourceVersion that a merge patch must meet.
func conditional(patch map[string]any, meets *unstructured.Unstructured) ([]byte, error) {
	meta, _ := patch["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		patch["metadata"] = meta
	}
	meta["uid"] = string(meets.GetUID())
	meta["resourceVersion"] = meets.GetResourceVersion()
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	return body, nil
}
