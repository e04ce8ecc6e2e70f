package mutate

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
	"janus.io/janus/internal/target"
)

// Change is one change of a Transaction to one target.
type Change struct {
	Ref target.Ref
	// Content is the object, or for a Patch the fields to set; nil for a Delete.
	Content map[string]any
	// Release is what a Patch releases: its content are these fields, with the values that they
	// have. Nil for any other change.
	Release *fieldmerge.Release
	// Sensitive keeps content out of errors.
	Sensitive bool
	// Names mark what the change writes.
	Names Names
	// Options are how the Transaction wants it made.
	Options Options
	// Environment is the cluster, as the Transaction's ServiceAccount sees it.
	Environment Environment
	// Fences keep requests that come late from doing harm.
	Fences Fences
}

// Done is what is known of a change that was made.
type Done struct {
	// Created is the uid of the object that a Create has made.
	Created types.UID
	// Target is what the API server has answered with; nil where nothing was written, or
	// what was written is not known.
	Target *unstructured.Unstructured
	// Unchanged is set when no request to write was sent: the target was as the change leaves
	// it.
	Unchanged bool
	// Warnings say what of the content the API server has not stored.
	Warnings []string
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
	// Do makes the change. When it returns no error the change is in effect.
	Do(ctx context.Context, c Change, before Baseline) (Done, error)
	// Observe checks whether the change is in effect.
	Observe(ctx context.Context, c Change, e Effect) (outcome.Finding, error)
	// Undo compensates the change. When it returns no error nothing is left of it.
	// There may be something to say beside an error too.
	Undo(ctx context.Context, c Change, e Effect) (outcome.Undone, error)
	// Verbs lists what the ServiceAccount must be allowed to do to the target, for
	// the change and for its compensation.
	Verbs() (change, compensation []string)
}

// strategies are the code of each type of change. Undo is its compensation, by which the
// same Transaction rolls it back. Once it has committed, another Transaction undoes it by
// its inverse.
var strategies = map[api.ChangeType]struct {
	strategy Strategy
	// inverse is the type of that change, and rewind leads back to the target before it.
	inverse api.ChangeType
	rewind  func(*rewinding, context.Context, Original) error
}{
	api.Create: {createStrategy{}, api.Delete, (*rewinding).uncreate},
	api.Update: {updateStrategy{}, api.Update, (*rewinding).unwrite},
	api.Patch:  {patchStrategy{}, api.Update, (*rewinding).unwrite},
	api.Delete: {deleteStrategy{}, api.Create, (*rewinding).undelete},
}

// For returns the strategy of a type of change.
func For(t api.ChangeType) (Strategy, bool) {
	known, ok := strategies[t]
	return known.strategy, ok
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
