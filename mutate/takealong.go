package mutate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate/kinds"
)

// What the garbage collector takes along with an object is not named in any request. So
// what others have filled, or what holds data, is looked for below it before it is deleted.

// admitBelow refuses to delete an object that this change made, where something goes with
// it that is not for this change to delete.
func (c Change) admitBelow(ctx context.Context, t tree) error {
	for _, d := range t.goes {
		below, obj, err := c.below(ctx, d)
		if err != nil {
			return err
		}
		if obj == nil {
			continue
		}
		for _, admit := range []func(context.Context, *unstructured.Unstructured) error{below.admitEmpty, below.admitUnused} {
			if err := admit(ctx, obj); err != nil {
				return c.takesAlong(err, d)
			}
		}
	}
	return nil
}

// takesAlong says of which object an obstacle is that would go with the target.
func (c Change) takesAlong(cause error, d Dependant) error {
	if class := errclass.ClassOf(cause); class != errclass.Conflict && class != errclass.Terminal {
		return cause
	}
	return c.fail(errclass.ClassOf(cause), errclass.ReasonOf(cause), "delete", "it owns %s, which would go with it: %w", d, cause)
}

// below is the deletion of something that goes with the target, if it is of a kind that
// holds what cannot be made again. The object is nil if it is not, or is gone.
func (c Change) below(ctx context.Context, d Dependant) (Change, *unstructured.Unstructured, error) {
	kind := schema.GroupKind{Group: d.GVR.Group, Kind: d.Kind}
	_, outside := kinds.OutsideOf(kind)
	switch kind {
	case target.NamespaceKind, target.CRDKind, kinds.Claim, kinds.Volume:
	default:
		if !outside {
			return c, nil, nil
		}
	}
	if kind == kinds.Claim && ephemeral(d) {
		return c, nil, nil
	}
	obj, err := target.Confirmed(func() (*unstructured.Unstructured, error) {
		return c.Environment.clientOf(d.GVR, d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
	})
	if errclass.Is(err, errclass.NotFound) || errclass.Is(err, errclass.NamespaceNotFound) {
		return c, nil, nil
	}
	if err != nil {
		return c, nil, errclass.Wrap(err, "read", d.String(), false)
	}
	return c.at(target.Ref{GVK: obj.GroupVersionKind(), GVR: d.GVR, Namespace: d.Namespace, Name: d.Name}), obj, nil
}

// ephemeral reports whether a claim is part of a Pod, and lives no longer than that by the
// wish of anyone who made it.
func ephemeral(d Dependant) bool {
	controller := metav1.GetControllerOf(d)
	return controller != nil && controller.Kind == kinds.Pod.Kind && controller.APIVersion == "v1"
}

// ownedLoss says what cannot be made again would go with the target, and what of it cannot
// be told.
func (c Change) ownedLoss(ctx context.Context, before *unstructured.Unstructured) (lost, warning string, err error) {
	if c.Options.propagation() == metav1.DeletePropagationOrphan {
		return "", "", nil
	}
	found, err := c.Environment.dependants(ctx, before, Irreplaceable)
	if err != nil {
		return "", "", err
	}
	var losses []string
	more := 0
	for _, d := range allBelow(before, found.All) {
		what, err := c.lossBelow(ctx, d)
		switch {
		case err != nil:
			return "", "", err
		case what != "" && len(losses) == 3:
			more++
		case what != "":
			losses = append(losses, what)
		}
	}
	if more > 0 {
		losses = append(losses, fmt.Sprintf("and %d more", more))
	}
	if len(losses) > 0 {
		return "it owns " + strings.Join(losses, "; "), "", nil
	}
	if _, anything := kinds.Adopts(c.Ref.GVK.GroupKind()); anything && len(found.Unseen) > 0 {
		return "", "whether it owns what cannot be made again, and would go with it, cannot be told: the ServiceAccount may not list " + strings.Join(found.Unseen, ", "), nil
	}
	return "", "", nil
}

// lossBelow says what would be lost with something that goes with the target.
func (c Change) lossBelow(ctx context.Context, d Dependant) (string, error) {
	below, obj, err := c.below(ctx, d)
	if err != nil || obj == nil {
		return "", err
	}
	switch below.Ref.GVK.GroupKind() {
	case target.NamespaceKind:
		return d.String() + ": " + kinds.Of(target.NamespaceKind).Loss.Ahead, nil
	case target.CRDKind:
		if c.Environment.Contents != nil {
			some, err := c.Environment.Contents(ctx, target.CRDKind, obj)
			if err == nil && len(some.Stay) == 0 {
				return "", nil
			}
			if err == nil {
				return fmt.Sprintf("%s: every object of its kind would be lost, such as %s", d, some.Stay[0]), nil
			}
			if !errclass.Is(err, errclass.AccessDenied) {
				return "", err
			}
		}
		return d.String() + ": " + kinds.Of(target.CRDKind).Loss.Ahead, nil
	case kinds.Claim:
		lost, _, err := below.volumeLoss(ctx, obj)
		if lost != "" {
			lost = d.String() + ": " + lost
		}
		return lost, err
	case kinds.Volume:
		if holder := claimRef(obj); holder["name"] == "" {
			return "", nil
		}
		return d.String() + ": it is bound, and its data may be lost", nil
	default:
		lost, err := below.outsideLoss(ctx, obj)
		if lost != "" {
			lost = d.String() + ": " + lost
		}
		return lost, err
	}
}

// admitUncreate refuses to undo the creation of an object where a rollback would have kept it.
// What a claim takes along is a loss of its deletion, see losses.
func (c Change) admitUncreate(ctx context.Context, live *unstructured.Unstructured) ([]string, error) {
	warnings, err := c.admitAdopted(ctx, live)
	if err != nil || c.Ref.GVK.GroupKind() == kinds.Claim {
		return warnings, err
	}
	err = c.admitUnused(ctx, live)
	var own *errclass.Error
	if class := errclass.ClassOf(err); err == nil || class != errclass.Conflict && class != errclass.Terminal || !errors.As(err, &own) {
		return warnings, err
	}
	if c.Options.AcceptLoss {
		return append(warnings, c.warn(own.Err.Error())...), nil
	}
	if own.Hint != "" {
		own.Hint += ", or "
	}
	return nil, own.WithHint(own.Hint + "set acceptLoss: true")
}

// admitAdopted refuses to undo the creation of an object that has adopted what was there
// before: that would go with it.
func (c Change) admitAdopted(ctx context.Context, live *unstructured.Unstructured) ([]string, error) {
	t, err := c.adoption(ctx, live)
	if err != nil || len(t.adopted) == 0 {
		return nil, err
	}
	if c.Options.AcceptLoss {
		return c.warn("what it has adopted and was there before goes with it: " + some(t.adopted)), nil
	}
	return nil, c.fail(errclass.Conflict, errclass.NotEmpty, "undo the creation of", "it has adopted %s, which was there before and would go with it", some(t.adopted)).
		WithHint("delete it by hand with kubectl delete --cascade=orphan, or set acceptLoss: true")
}
