package mutate

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
)

// attempts is how often a write is sent again in one call because nothing but the
// status had changed meanwhile. A controller that writes faster than that is
// waited for with back-off.
const attempts = 5

// drifted is the conflict that a target meets which another client has written since it
// was prepared.
func (c Change) drifted(op string, found []fieldmerge.FieldConflict) error {
	fields := c.fields(found)
	err := c.fail(errclass.Conflict, errclass.Drifted, op, "another client has changed it since it was prepared: %s", listed(fields)).
		WithHint("their version is kept; create the Transaction again to work from it")
	err.Fields = fields
	return err
}

// sameObject reports whether live is the object that uid names.
func sameObject(live *unstructured.Unstructured, uid types.UID) bool {
	return live != nil && live.GetUID() == uid
}

// write is a request that must meet the target as it was prepared, status aside.
type write struct {
	Change
	before Baseline
	// op says in errors what is done.
	op string
	// applies is set for a Patch: nothing but the fields of the content is written.
	applies bool
	// follows is set where the content was derived from the target: what other clients write
	// to fields that it does not change is kept.
	follows bool
}

// refresh looks at a target that a write did not meet as expected. It gives what to try
// again with, and the version that it is to meet, when nothing but the status has changed.
func (w write) refresh(ctx context.Context) (Change, Version, error) {
	live, err := Read(ctx, w.Change)
	if err != nil {
		return w.Change, Version{}, err
	}
	if !sameObject(live, w.before.UID) {
		return w.Change, Version{}, w.gone(live, w.op)
	}
	if live.GetDeletionTimestamp() != nil {
		return w.Change, Version{}, w.deleted(w.op, live)
	}
	image, err := w.before.Image(ctx)
	if err != nil {
		return w.Change, Version{}, err
	}
	if image == nil {
		return w.Change, Version{}, w.fail(errclass.Terminal, errclass.BeforeImageLost, w.op, "the record lacks what the target was when it was prepared")
	}
	if w.follows {
		following, err := w.follow(ctx, image, live)
		return following, VersionOf(live), err
	}
	return w.Change, VersionOf(live), w.undisturbed(ctx, image, live)
}

// undisturbed checks whether a target is as it was prepared, status aside.
func (w write) undisturbed(ctx context.Context, image, live *unstructured.Unstructured) error {
	images, err := w.images(ctx, image, nil, live)
	if err != nil {
		return err
	}
	if fields := w.disturbing(images.Drift()); len(fields) > 0 {
		return w.drifted(w.op, fields)
	}
	if w.applies && w.Names.owns(live) && !w.Names.owns(image) {
		// An apply takes away what its manager owns and does not set any more.
		return w.fail(errclass.Conflict, errclass.Drifted, w.op, "another client has made %s, the field manager of this item, own fields since it was prepared", w.Names.Manager).
			WithHint("create the Transaction again: its items have other managers")
	}
	return w.reowned(images, w.unwritten)
}

// reowned is the conflict of a target of which another client has come to own fields
// that the change writes, with the values that they had.
func (w write) reowned(images fieldmerge.Images, unwritten func(fieldmerge.FieldConflict) bool) error {
	found, err := images.Reowned()
	if err != nil {
		return w.unreadableOwners(err)
	}
	if found = slices.DeleteFunc(found, unwritten); len(found) == 0 {
		return nil
	}
	fields := w.fields(found)
	drift := w.fail(errclass.Conflict, errclass.Drifted, w.op, "the owners of fields have changed since it was prepared: %s", listed(fields)).
		WithHint("create the Transaction again to work from it")
	drift.Fields = fields
	return drift
}

// unwritten reports whether a Patch does not write a field, or an Update that changes nothing.
func (w write) unwritten(f fieldmerge.FieldConflict) bool {
	if w.applies {
		return !f.SetBy(w.Content)
	}
	return w.before.Idle && f.ByControllers()
}

// disturbing leaves out what the control plane has written and a Patch does not
// touch, such as the replicas under an autoscaler. An Update or a Delete would
// overwrite it, but for an Update that changes nothing, and is not sent.
func (w write) disturbing(drift []fieldmerge.FieldConflict) []fieldmerge.FieldConflict {
	if !w.applies && !w.before.Idle {
		return drift
	}
	var out []fieldmerge.FieldConflict
	for _, f := range drift {
		if !f.ByControllers() || w.applies && f.SetBy(w.Content) {
			out = append(out, f)
		}
	}
	return out
}

func (c Change) deleted(op string, live *unstructured.Unstructured) error {
	return c.fail(errclass.Conflict, errclass.Drifted, op, "another client has deleted it since it was prepared%s", waitsFor(live))
}

func (c Change) gone(live *unstructured.Unstructured, op string) error {
	if live == nil {
		return c.fail(errclass.Conflict, errclass.Drifted, op, "another client has deleted it since it was prepared").
			WithHint("create the Transaction again if it is still wanted")
	}
	return c.fail(errclass.Conflict, errclass.Drifted, op, "another client has deleted and re-created it since it was prepared").
		WithHint("theirs is kept; create the Transaction again to work from it")
}

// send sends the write until it meets the object as it was prepared, and returns what the
// API server has answered. A target that did not exist then has no version to meet:
// without one an update or an apply would create or overwrite whatever is there.
func (w write) send(ctx context.Context, request func(c Change, meets Version) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	if w.before.UID == "" || w.before.ResourceVersion == "" {
		return nil, w.fail(errclass.Terminal, errclass.NotFound, w.op, "it did not exist when it was prepared").WithHint("make it with a Create")
	}
	sent, meets := w.Change, w.before.Version
	for n := range attempts {
		// The version that was read after a refusal may be that of an object that was
		// changed and restored meanwhile. That is asked after it was read.
		if err := w.Fences.confirm(ctx, n > 0); err != nil {
			return nil, err
		}
		after, err := request(sent, meets)
		if err == nil {
			return after, nil
		}
		if !stale(err) {
			return nil, w.wrap(err, w.op)
		}
		next, now, lookErr := w.refresh(ctx)
		if lookErr != nil {
			return nil, lookErr
		}
		if now == meets {
			return nil, w.wrap(err, w.op)
		}
		sent, meets = next, now
	}
	return nil, w.fail(errclass.Retryable, errclass.StaleVersion, w.op, "its status changes faster than it can be written")
}

// do makes the change, unless there is nothing to write.
func (w write) do(ctx context.Context, request func(c Change, meets Version) (*unstructured.Unstructured, error)) (Done, error) {
	if idle, err := w.idle(ctx); idle || err != nil {
		return Done{Unchanged: idle}, err
	}
	after, err := w.send(ctx, request)
	if err != nil {
		return Done{}, err
	}
	return w.done(ctx, after), nil
}

// done is what is known of the change once the API server has answered it.
func (c Change) done(ctx context.Context, after *unstructured.Unstructured) Done {
	return Done{Target: after, Warnings: c.Warnings(ctx, after)}
}

// stale reports an error that means: the target is not the one that was expected.
// A missing one counts, one whose namespace is missing too, and so does a body whose uid is another's, which the API
// server calls invalid.
func stale(err error) bool {
	var late *lateError
	var lack *lackError
	if errors.As(err, &late) || errors.As(err, &lack) {
		return false
	}
	return errclass.Is(err, errclass.StaleVersion) || errclass.Is(err, errclass.NotFound) || errclass.Is(err, errclass.NamespaceNotFound) || wrongUID(err)
}

func wrongUID(err error) bool {
	status, ok := errclass.Status(err)
	if !ok || status.Details == nil {
		return false
	}
	for _, cause := range status.Details.Causes {
		if cause.Field == "metadata.uid" {
			return true
		}
	}
	return false
}

// patchOptions are those of every patch that is not an apply.
func (c Change) patchOptions() metav1.PatchOptions {
	return metav1.PatchOptions{FieldManager: c.Names.Manager, FieldValidation: metav1.FieldValidationStrict}
}

// mergePatch sends a merge patch that must meet the object as it was seen.
func (c Change) mergePatch(ctx context.Context, patch []byte, subresource ...string) (*unstructured.Unstructured, error) {
	return c.client().Patch(ctx, c.Ref.Name, types.MergePatchType, patch, c.patchOptions(), subresource...)
}
