package mutate

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/structured-merge-diff/v4/typed"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
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
	// FieldManager is the applier to which a commit leaves what nobody owned before; empty
	// for nobody.
	FieldManager string
	// Sets returns what the changes of the target set, if that is more than Content.
	Sets func() ([]map[string]any, error)
	// Owners returns who owned the fields before the change that this one undoes; nil for one
	// that undoes none.
	Owners func(ctx context.Context) ([]metav1.ManagedFieldsEntry, error)
	// Idle is set when the change, made to the target as it was prepared, would leave it as
	// it is, its field owners too.
	Idle bool
	// Family is what the field managers of all items of the Transaction begin with.
	Family string
	// Marker is what a created object carries in the annotation MarkerAnnotation.
	Marker string
	// Transaction is what a created object says by its label and annotation
	// api.TransactionKey.
	Transaction types.NamespacedName
	// Account is the ServiceAccount that the Transaction acts as.
	Account types.NamespacedName
	// Deferred is set when the change cannot be tried before earlier changes of
	// the Transaction are in effect: they make its kind or its namespace.
	Deferred bool
	// Sensitive keeps content out of errors.
	Sensitive bool
	// Resource reads and writes the target as the Transaction's ServiceAccount.
	Resource dynamic.ResourceInterface
	// Elsewhere returns the target by a version of its kind that is served, with a client
	// for that; false if the kind is served no more. It is asked where the API server
	// seems not to serve the version of Ref. Where it is nil, an object that is not
	// served does not exist.
	Elsewhere func() (target.Ref, dynamic.ResourceInterface, bool, error)
	// Versions returns the other versions of the target's kind that the cluster serves; nil
	// where none is looked at. With anew, what is known of them is looked up again.
	Versions func(anew bool) ([]Served, error)
	// Cluster reads and writes what belongs to the target, such as the volume of a
	// claim, as the Transaction's ServiceAccount; nil where nothing else is looked at.
	Cluster dynamic.Interface
	// OwnerRefs tells of owners and of what else the Transaction deletes; nil when nothing
	// is known of them.
	OwnerRefs OwnerRefs
	// Created is the uid of the object that a Create has made, or the compensation of a
	// Delete; empty if it is not known.
	Created types.UID
	// Recreated is the uid of the object that rolling back a later change of the
	// Transaction, which had deleted the target, has made in its place.
	Recreated types.UID
	// Began is when the Transaction began, by the clock of janusd.
	Began time.Time
	// Type tells how the fields of the target's kind merge.
	Type func(ctx context.Context) (typed.ParseableType, error)
	// Unforced makes a Patch fail where it would take a field from another manager.
	Unforced bool
	// Propagation says what a Delete does with the objects that the target owns.
	Propagation metav1.DeletionPropagation
	// Inverts is set for a Delete that rolls back a Create which has committed.
	Inverts bool
	// AcceptLoss allows what cannot be rolled back completely.
	AcceptLoss bool
	// Last tells whether no other change comes after this one, Tail whether none but
	// Deletes do; nil means that some do. To find out takes a look at all of them.
	Last, Tail func() bool
	// Overwrite makes Undo restore the fields too that others have written since.
	Overwrite bool
	// Contents names some of what would go with the target if it were deleted; nil
	// for a kind that holds nothing.
	Contents func(ctx context.Context, live *unstructured.Unstructured) (Contents, error)

	// ContentsOf returns Contents for other kinds.
	ContentsOf func(kind schema.GroupKind) func(ctx context.Context, live *unstructured.Unstructured) (Contents, error)
	// Dependants lists what the target owns; nil for a kind that owns nothing of its own.
	Dependants func(ctx context.Context, live *unstructured.Unstructured, wanted Wanted) (Dependants, error)

	// Confirm makes sure that nobody else works on the Transaction by now, if this may
	// come late, or anyway. It is asked before a write that nothing in the target would
	// refuse for being late: the object may be as it was because another process has
	// made the change and rolled it back. Its error is passed on as it is. It is nil
	// where nothing is written for good.
	Confirm func(ctx context.Context, anyway bool) error

	// MayCreate makes sure that no creation of the target sent before is still under way.
	// It is asked before the target is created, and its error is passed on as it is. It is
	// nil where nothing is written for good.
	MayCreate func() error

	// Made, if it is not nil, is told the uid of the object that a Create has made.
	Made func(types.UID)

	// Seen is what the target was when it was last written, if that is known: to undo an
	// Update or a Patch, it need not be read then.
	Seen *unstructured.Unstructured

	// Wrote, if it is not nil, is told what the target is after the change was made.
	Wrote func(*unstructured.Unstructured)

	// Warn, if it is not nil, is told what of the content the API server has not stored.
	Warn func(warnings []string)

	// Fresh is set when no request for the change, or for its compensation where it is
	// that, that was sent before can have taken effect.
	Fresh bool

	// Settled is set for a compensation when the other changes are rolled back, as far as
	// that is possible. Before that a controller may be at work which one of them began.
	Settled bool

	// Undoing is set when the compensation of the change may have been begun. Observe then
	// finds the change in effect only if nothing of it has been rolled back.
	Undoing bool

	// applies is set by Patch: nothing but the fields of Content is written.
	applies bool
}

// Contents names some of the objects in a Namespace, or of a kind.
type Contents struct {
	// Stay are those that nobody is about to delete, Leave those that are being deleted or
	// that the garbage collector takes along with their owners.
	Stay, Leave []string
}

// Strategy is the code for one type of change. before is the target as it was
// when it was prepared, nil if it did not exist.
type Strategy interface {
	// Admit refuses a change that the target, as it is, does not allow, or that
	// could not be rolled back. It returns what is hard to roll back about one that it
	// lets pass.
	Admit(ctx context.Context, c Change, before *unstructured.Unstructured) (warnings []string, err error)
	// Try dry-runs the change and returns what the target would be; nil when that
	// cannot be known.
	Try(ctx context.Context, c Change, before Baseline) (*unstructured.Unstructured, error)
	// Do makes the change. When it returns nil the change is in effect.
	Do(ctx context.Context, c Change, before Baseline) error
	// Observe checks whether the change is in effect.
	Observe(ctx context.Context, c Change, record snapshot.Record) (outcome.Finding, error)
	// Undo compensates the change. When it returns no error nothing is left of it.
	// There may be something to say beside an error too.
	Undo(ctx context.Context, c Change, record snapshot.Record) (outcome.Undone, error)
	// Verbs lists what the ServiceAccount must be allowed to do to the target, for
	// the change and for its compensation.
	Verbs() (change, compensation []string)
}

// For returns the strategy of a type of change.
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

// wrap classifies an error of the API server; one of our own says it all already.
func (c Change) wrap(err error, op string) error {
	var own *errclass.Error
	if errors.As(err, &own) {
		return err
	}
	return errclass.Wrap(err, op, c.Ref.String(), c.Sensitive)
}

func (c Change) fail(class errclass.Class, reason, op, format string, args ...any) *errclass.Error {
	return errclass.New(class, reason, op, c.Ref.String(), format, args...)
}

func (c Change) ours(manager string) bool { return manager == c.Manager }

// sibling reports whether a manager is that of an item of this Transaction.
func (c Change) sibling(manager string) bool {
	return c.Family != "" && strings.HasPrefix(manager, c.Family)
}

// family reports whether a manager is of this Transaction, or is what another has
// left: that of its marks, or one of an item of a Transaction that was let go half-way.
func family(manager string) bool {
	return manager == DefaultManager || itemManager.MatchString(manager)
}

// itemManager is what the managers of items look like.
var itemManager = regexp.MustCompile(`^janus-[0-9a-f]{8}-[0-9]+$`)

// owns reports whether the change has left its mark on an object.
func (c Change) owns(obj *unstructured.Unstructured) bool {
	return fieldmerge.Owned(obj, c.ours)
}

// body is the content with the identity of the target, and when it is to meet a
// certain object, with that object's uid and resourceVersion.
func (c Change) body(meets Version) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	if c.Content != nil {
		obj = (&unstructured.Unstructured{Object: c.Content}).DeepCopy()
	}
	if obj.Object["metadata"] == nil {
		delete(obj.Object, "metadata") // Into null, neither name nor condition could be written.
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
