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

// Version is what a conditional write must meet.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// VersionOf returns the version of an object, or the zero value for none.
func VersionOf(obj *unstructured.Unstructured) Version {
	if obj == nil {
		return Version{}
	}
	return Version{UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
}

// Baseline is the target as it was when it was prepared. A write that meets it
// needs no more than its version; the image is fetched when it does not.
type Baseline struct {
	Version
	Image func(ctx context.Context) (*unstructured.Unstructured, error)
}

// Absent reports that the target did not exist.
func (b Baseline) Absent() bool { return b.UID == "" }

// BaselineOf makes a Baseline of an image at hand, which may be nil.
func BaselineOf(image *unstructured.Unstructured) Baseline {
	return Baseline{Version: VersionOf(image), Image: func(context.Context) (*unstructured.Unstructured, error) { return image, nil }}
}

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

// refresh looks at a target that a write did not meet as expected. It returns the
// live object to try again with, when nothing but the status has changed.
func (c Change) refresh(ctx context.Context, before Baseline, op string) (Version, error) {
	live, err := Read(ctx, c)
	if err != nil {
		return Version{}, err
	}
	if !sameObject(live, before.UID) {
		return Version{}, c.gone(live, op)
	}
	if live.GetDeletionTimestamp() != nil {
		return Version{}, c.deleted(op, live)
	}
	image, err := before.Image(ctx)
	if err != nil {
		return Version{}, err
	}
	if image == nil {
		return Version{}, c.fail(errclass.Terminal, errclass.BeforeImageLost, op, "the record lacks what the target was when it was prepared")
	}
	images, err := c.images(ctx, image, nil, live)
	if err != nil {
		return Version{}, err
	}
	if fields := c.disturbing(images.Drift()); len(fields) > 0 {
		return Version{}, c.drifted(op, fields)
	}
	if c.applies && c.owns(live) && !c.owns(image) {
		// An apply takes away what its manager owns and does not set any more.
		return Version{}, c.fail(errclass.Conflict, errclass.Drifted, op, "another client has made %s, the field manager of this item, own fields since it was prepared", c.Manager).
			WithHint("create the Transaction again: its items have other managers")
	}
	if err := c.reowned(images, op); err != nil {
		return Version{}, err
	}
	return VersionOf(live), nil
}

// reowned is the conflict of a target of which another client has come to own fields
// that the change writes, with the values that they had.
func (c Change) reowned(images fieldmerge.Images, op string) error {
	found, err := images.Reowned()
	if err != nil {
		return c.unreadableOwners(err)
	}
	switch {
	case c.applies:
		found = slices.DeleteFunc(found, func(f fieldmerge.FieldConflict) bool { return !f.SetBy(c.Content) })
	case c.Idle:
		found = slices.DeleteFunc(found, fieldmerge.FieldConflict.ByControllers)
	}
	if len(found) == 0 {
		return nil
	}
	fields := c.fields(found)
	drift := c.fail(errclass.Conflict, errclass.Drifted, op, "the owners of fields have changed since it was prepared: %s", listed(fields)).
		WithHint("create the Transaction again to work from it")
	drift.Fields = fields
	return drift
}

// disturbing leaves out what the control plane has written and a Patch does not
// touch, such as the replicas under an autoscaler. An Update or a Delete would
// overwrite it, but for an Update that changes nothing, and is not sent.
func (c Change) disturbing(drift []fieldmerge.FieldConflict) []fieldmerge.FieldConflict {
	if !c.applies && !c.Idle {
		return drift
	}
	var out []fieldmerge.FieldConflict
	for _, f := range drift {
		if !f.ByControllers() || c.applies && f.SetBy(c.Content) {
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

// write sends a conditional write until it meets the object as it was prepared,
// status aside. A target that did not exist then has no version to meet: without
// one an update or an apply would create or overwrite whatever is there.
func (c Change) write(ctx context.Context, before Baseline, op string, send func(meets Version) error) error {
	if before.UID == "" || before.ResourceVersion == "" {
		return c.fail(errclass.Terminal, errclass.NotFound, op, "it did not exist when it was prepared").WithHint("make it with a Create")
	}
	meets := before.Version
	for n := range attempts {
		// The version that was read after a refusal may be that of an object that was
		// changed and restored meanwhile. That is asked after it was read.
		if err := c.confirm(ctx, n > 0); err != nil {
			return err
		}
		err := send(meets)
		if err == nil {
			return nil
		}
		if !stale(err) {
			return c.wrap(err, op)
		}
		now, lookErr := c.refresh(ctx, before, op)
		if lookErr != nil {
			return lookErr
		}
		if now == meets {
			return c.wrap(err, op)
		}
		meets = now
	}
	return c.fail(errclass.Retryable, errclass.StaleVersion, op, "its status changes faster than it can be written")
}

// wrote passes on what the target is after a write.
func (c Change) wrote(ctx context.Context, after *unstructured.Unstructured, err error) error {
	if err != nil {
		return err
	}
	if c.Wrote != nil {
		c.Wrote(after)
	}
	c.WarnOf(ctx, after)
	return nil
}

// confirm asks whether a write may still be made.
func (c Change) confirm(ctx context.Context, anyway bool) error {
	if c.Confirm == nil {
		return nil
	}
	if err := c.Confirm(ctx, anyway); err != nil {
		return &lateError{err}
	}
	return nil
}

// lateError says that another process works on the Transaction by now, or that the time for
// a write has not come. That is no reason to look at the object again.
type lateError struct{ error }

func (e *lateError) Unwrap() error { return e.error }

// mayCreate asks whether the target may be created now.
func (c Change) mayCreate(ctx context.Context) error {
	if c.MayCreate != nil {
		if err := c.MayCreate(); err != nil {
			return &lateError{err}
		}
	}
	return c.confirm(ctx, false)
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
	return metav1.PatchOptions{FieldManager: c.Manager, FieldValidation: metav1.FieldValidationStrict}
}

// mergePatch sends a merge patch that must meet the object as it was seen.
func (c Change) mergePatch(ctx context.Context, patch []byte, subresource ...string) (*unstructured.Unstructured, error) {
	return c.Resource.Patch(ctx, c.Ref.Name, types.MergePatchType, patch, c.patchOptions(), subresource...)
}
