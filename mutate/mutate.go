package mutate

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/fault"
	"janus.io/janus/internal/target"
	"janus.io/janus/snapshot"
)

// Change is one change and the client to make it with.
type Change struct {
	Ref target.Ref
	// Content is the object, or for a Patch the fields to set; nil for a Delete.
	Content map[string]any
	// Manager is the field manager of this item and of no other. Two applies by
	// one manager to one object would drop each other's fields.
	Manager string
	// Marker is what a created object carries in the annotation MarkerAnnotation.
	Marker string
	// Deferred is set when the change cannot be tried before earlier changes of
	// the Transaction are in effect: they make its kind or its namespace.
	Deferred bool
	// Sensitive keeps content out of errors.
	Sensitive bool
	// Resource reads and writes the target as the Transaction's ServiceAccount.
	Resource dynamic.ResourceInterface
	// OwnerThere tells whether the object that an owner reference of the target
	// names exists under that uid, as far as the ServiceAccount can see.
	OwnerThere func(ctx context.Context, owner metav1.OwnerReference) (bool, error)
	// Recreated is set when a later change of the Transaction deleted the target, and
	// taking that back has made it anew, under another uid.
	Recreated bool
	// Contents names some of what would go with the target if it were deleted; nil
	// for a kind that holds nothing.
	Contents func(ctx context.Context, live *unstructured.Unstructured) ([]string, error)
}

// MarkerAnnotation is set on objects that a Transaction creates. It shows, after
// a lost reply, whose object it is: an object without any field of its own, such
// as an empty ConfigMap, would have no entry in managedFields.
const MarkerAnnotation = "janus.io/transaction-uid"

// Finding is what Observe saw.
type Finding int

const (
	// NotApplied means that the change is not in effect.
	NotApplied Finding = iota
	// Applied means that the change is in effect.
	Applied
	// Applying means that the change takes effect by itself once finalizers are done.
	Applying
	// Diverged means that somebody else has written the target, and it cannot be told.
	Diverged
)

// Strategy is the code for one type of change. before is the target as it was
// when it was prepared, nil if it did not exist.
type Strategy interface {
	// Admit refuses a change that the target, as it is, does not allow, or that
	// could not be taken back.
	Admit(c Change, before *unstructured.Unstructured) error
	// Try dry-runs the change and gives what the target would be; nil when that
	// cannot be known.
	Try(ctx context.Context, c Change, before Baseline) (*unstructured.Unstructured, error)
	// Do makes the change. When it returns nil the change is in effect.
	Do(ctx context.Context, c Change, before Baseline) error
	// Observe looks whether the change is in effect.
	Observe(ctx context.Context, c Change, record snapshot.Record) (Finding, error)
	// Undo takes the change back. When it returns nil nothing is left of it.
	Undo(ctx context.Context, c Change, record snapshot.Record) error
	// Verbs lists what the ServiceAccount must be allowed to do to the target, for
	// the change and for its compensation.
	Verbs() (change, compensation []string)
}

// For gives the strategy of a type of change.
func For(t api.ChangeType) (Strategy, bool) {
	switch t {
	case api.Create:
		return createStrategy{}, true
	case api.Update:
		return updateStrategy{}, true
	case api.Patch:
		return patchStrategy{}, true
	case api.Delete:
		return deleteStrategy{}, true
	default:
		return nil, false
	}
}

// Version is what a conditional write must meet.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// VersionOf gives the version of an object, or the zero value for none.
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

// Read gets the target, nil if it does not exist.
func Read(ctx context.Context, c Change) (*unstructured.Unstructured, error) {
	live, err := c.Resource.Get(ctx, c.Ref.Name, metav1.GetOptions{})
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.NamespaceNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, c.wrap(err, "read")
	}
	return live, nil
}

// wrap classifies an error of the API server; one of our own says it all already.
func (c Change) wrap(err error, op string) error {
	var own *fault.Error
	if errors.As(err, &own) {
		return err
	}
	return fault.Wrap(err, op, c.Ref.String(), c.Sensitive)
}

func (c Change) fail(class fault.Class, reason, op, format string, args ...any) *fault.Error {
	return fault.New(class, reason, op, c.Ref.String(), format, args...)
}

func (c Change) ours(manager string) bool { return manager == c.Manager }

// owns reports whether the change has left its mark on an object.
func (c Change) owns(obj *unstructured.Unstructured) bool {
	return snapshot.Owned(obj, c.ours)
}

// body is the content with the identity of the target, and when it is to meet a
// certain object, with that object's uid and resourceVersion.
func (c Change) body(meets Version) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	if c.Content != nil {
		obj = (&unstructured.Unstructured{Object: c.Content}).DeepCopy()
	}
	obj.SetGroupVersionKind(c.Ref.GVK)
	obj.SetName(c.Ref.Name)
	if c.Ref.Namespace != "" {
		obj.SetNamespace(c.Ref.Namespace)
	}
	if meets.UID != "" {
		obj.SetUID(meets.UID)
		obj.SetResourceVersion(meets.ResourceVersion)
	}
	c.storeStringData(obj)
	return obj
}

func dryRun(on bool) []string {
	if on {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// admitExisting refuses a target that is not there, or on its way out.
func (c Change) admitExisting(before *unstructured.Unstructured, op string) error {
	if before == nil {
		if c.Deferred {
			return c.fail(fault.Terminal, fault.NotFound, op, "it does not exist, and what its kind or namespace is made by comes earlier in this Transaction").
				WithHint("make it with a Create")
		}
		return c.fail(fault.Terminal, fault.NotFound, op, "it does not exist").WithHint("make it with a Create")
	}
	return c.admitAlive(before, op)
}

func (c Change) admitAlive(before *unstructured.Unstructured, op string) error {
	if before.GetDeletionTimestamp() == nil {
		return nil
	}
	return c.fail(fault.Terminal, fault.Terminating, op, "it is being deleted%s", waitsFor(before)).
		WithHint("wait until it is gone, then create the Transaction again")
}

func waitsFor(obj *unstructured.Unstructured) string {
	if f := obj.GetFinalizers(); len(f) > 0 {
		return fault.Printable(" and waits for its finalizers " + joined(f))
	}
	return ""
}

func joined(words []string) string {
	out := ""
	for i, w := range words {
		if i > 0 {
			out += ", "
		}
		out += w
	}
	return out
}

// drifted is the conflict that a target meets which somebody has written since it
// was prepared.
func (c Change) drifted(op string, fields []snapshot.FieldConflict) error {
	var list []string
	for i, f := range fields {
		if i == 5 {
			list = append(list, "and more")
			break
		}
		list = append(list, f.String())
	}
	return c.fail(fault.Conflict, fault.Drifted, op, "somebody else has changed it since it was prepared: %s", joined(list)).
		WithHint("their version is kept; create the Transaction again to work from it")
}

// sameObject reports whether live is the object that uid names.
func sameObject(live *unstructured.Unstructured, uid types.UID) bool {
	return live != nil && live.GetUID() == uid
}

// refresh looks at a target that a write did not meet as expected. It gives the
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
		return Version{}, c.fail(fault.Conflict, fault.Drifted, op, "somebody has deleted it since it was prepared%s", waitsFor(live))
	}
	image, err := before.Image(ctx)
	if err != nil {
		return Version{}, err
	}
	if image == nil {
		return Version{}, c.fail(fault.Terminal, fault.BeforeImageLost, op, "the record lacks what the target was when it was prepared")
	}
	if fields := snapshot.Drift(image, live); len(fields) > 0 {
		return Version{}, c.drifted(op, fields)
	}
	return VersionOf(live), nil
}

func (c Change) gone(live *unstructured.Unstructured, op string) error {
	if live == nil {
		return c.fail(fault.Conflict, fault.Drifted, op, "somebody else has deleted it since it was prepared").
			WithHint("create the Transaction again if it is still wanted")
	}
	return c.fail(fault.Conflict, fault.Drifted, op, "somebody else has deleted and re-created it since it was prepared").
		WithHint("theirs is kept; create the Transaction again to work from it")
}

// write sends a conditional write until it meets the object as it was prepared,
// status aside. A target that did not exist then has no version to meet: without
// one an update or an apply would create or overwrite whatever is there.
func (c Change) write(ctx context.Context, before Baseline, op string, send func(meets Version) error) error {
	if before.UID == "" || before.ResourceVersion == "" {
		return c.fail(fault.Terminal, fault.NotFound, op, "it did not exist when it was prepared").WithHint("make it with a Create")
	}
	meets := before.Version
	for range attempts {
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
	return c.fail(fault.Retryable, fault.StaleVersion, op, "its status changes faster than it can be written")
}

// stale reports an error that means: the target is not the one that was expected.
// A missing one counts, and so does a body whose uid is another's, which the API
// server calls invalid.
func stale(err error) bool {
	return fault.Is(err, fault.StaleVersion) || fault.Is(err, fault.NotFound) || wrongUID(err)
}

func wrongUID(err error) bool {
	status, ok := fault.Status(err)
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
