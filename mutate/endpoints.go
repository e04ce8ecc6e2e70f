package mutate

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate/kinds"
)

// endpointsByHand returns the Endpoints that another client has made for a Service that
// selects no Pods. The control plane deletes them with the Service, by their name. What the
// ServiceAccount may not read is taken not to be there.
func (c Change) endpointsByHand(ctx context.Context, service *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if c.Ref.GVK.GroupKind() != kinds.Service || selects(service) {
		return nil, nil
	}
	found, err := c.endpointsOf(ctx, service.GetNamespace(), service.GetName())
	if errclass.Is(err, errclass.AccessDenied) {
		return nil, nil
	}
	return found, err
}

func selects(service *unstructured.Unstructured) bool {
	selector, _, _ := unstructured.NestedMap(service.Object, "spec", "selector")
	return len(selector) > 0
}

// endpointsOf reads the Endpoints of a Service; nil if there are none, or soon.
func (c Change) endpointsOf(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	found, err := target.Confirmed(func() (*unstructured.Unstructured, error) {
		return c.Environment.Cluster.Resource(kinds.Endpoints).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	switch {
	case errclass.Is(err, errclass.NotFound), errclass.Is(err, errclass.NamespaceNotFound):
		return nil, nil
	case err != nil:
		return nil, errclass.Wrap(err, "read", "Endpoints "+namespace+"/"+name, false)
	case found.GetDeletionTimestamp() != nil:
		return nil, nil
	}
	return found, nil
}

// overwritten says which Endpoints the control plane would overwrite because a Service comes to
// select Pods: what others have written of the addresses. before is nil if the Service is made.
func (c Change) overwritten(ctx context.Context, before, after *unstructured.Unstructured) (string, error) {
	if c.Ref.GVK.GroupKind() != kinds.Service || before != nil && selects(before) || !selects(after) {
		return "", nil
	}
	found, err := c.endpointsOf(ctx, c.Ref.Namespace, c.Ref.Name)
	if err != nil || found == nil || c.deletedBefore(found) {
		return "", err
	}
	_, addresses := found.Object["subsets"]
	byHand := addresses && len(found.GetManagedFields()) == 0
	if !byHand {
		byHand, err = c.writtenBelow(found, ".subsets")
	}
	if err != nil || !byHand {
		return "", err
	}
	return "with a selector, the control plane would overwrite Endpoints " + found.GetNamespace() + "/" + found.GetName() + ", which another client has written", nil
}

// admitOverwriting refuses to make a Service that would have the control plane overwrite
// Endpoints that are there, unless no other change comes after it. A rollback deletes
// the Service, and the control plane the Endpoints.
func (c Change) admitOverwriting(ctx context.Context) ([]string, error) {
	if c.Ref.Deferred {
		return nil, nil
	}
	what, err := c.overwritten(ctx, nil, c.body(Version{}))
	switch {
	case errclass.Is(err, errclass.AccessDenied) || err == nil && what == "":
		return nil, nil
	case err != nil:
		return nil, err
	case c.Options.Inverts && c.Options.AcceptLoss, !c.Options.Inverts && known(c.Options.Last):
		return c.warn(what), nil
	case c.Options.Inverts:
		return nil, c.fail(errclass.Terminal, errclass.Irreversible, "undo the deletion of", "%s", what).WithHint("delete the Endpoints before, or " + accepting)
	}
	return nil, c.fail(errclass.Terminal, errclass.Irreversible, "create", "it could not be rolled back: %s", what).
		WithHint("make it the last change, or delete the Endpoints before")
}

// deletedBefore reports whether an earlier change of the Transaction deletes an object, so that
// its rollback restores it.
func (c Change) deletedBefore(endpoints *unstructured.Unstructured) bool {
	ref := target.Ref{GVK: endpoints.GroupVersionKind(), GVR: kinds.Endpoints, Namespace: endpoints.GetNamespace(), Name: endpoints.GetName()}
	return c.Environment.DeletedBefore != nil && c.Environment.DeletedBefore(ref)
}

// admitEndpoints refuses to delete a Service that this change made for Endpoints that were
// there before.
func (c Change) admitEndpoints(ctx context.Context, service *unstructured.Unstructured) error {
	found, err := c.endpointsByHand(ctx, service)
	if err != nil || found == nil || !olderThan(found, service) {
		return err
	}
	if c.Options.Inverts && c.Environment.deletes(kinds.EndpointsKind, found.GetNamespace(), found.GetName()) {
		return nil
	}
	return c.fail(errclass.Conflict, errclass.NotEmpty, "delete", "Endpoints %s/%s were there before it, and the control plane would delete them with it", found.GetNamespace(), found.GetName()).
		WithHint("it is kept; delete it by hand if they are not wanted, or save them before")
}

// endpointsWarning says that a rollback does not re-create such Endpoints.
func (c Change) endpointsWarning(ctx context.Context, service *unstructured.Unstructured) (string, error) {
	found, err := c.endpointsByHand(ctx, service)
	if err != nil || found == nil {
		return "", err
	}
	return "the control plane deletes Endpoints " + found.GetNamespace() + "/" + found.GetName() + " with it, and a rollback does not re-create them; EndpointSlices made by hand stay", nil
}
