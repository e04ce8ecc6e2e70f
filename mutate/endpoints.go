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
	selector, _, _ := unstructured.NestedMap(service.Object, "spec", "selector")
	if c.Ref.GVK.GroupKind() != kinds.Service || len(selector) > 0 {
		return nil, nil
	}
	found, err := target.Confirmed(func() (*unstructured.Unstructured, error) {
		return c.Environment.Cluster.Resource(kinds.Endpoints).Namespace(service.GetNamespace()).Get(ctx, service.GetName(), metav1.GetOptions{})
	})
	switch {
	case errclass.Is(err, errclass.NotFound), errclass.Is(err, errclass.NamespaceNotFound), errclass.Is(err, errclass.AccessDenied):
		return nil, nil
	case err != nil:
		return nil, errclass.Wrap(err, "read", "Endpoints "+service.GetNamespace()+"/"+service.GetName(), false)
	case found.GetDeletionTimestamp() != nil:
		return nil, nil
	}
	return found, nil
}

// admitEndpoints refuses to delete a Service that this change made for Endpoints that were
// there before.
func (c Change) admitEndpoints(ctx context.Context, service *unstructured.Unstructured) error {
	found, err := c.endpointsByHand(ctx, service)
	if err != nil || found == nil || !olderThan(found, service) {
		return err
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
