package adapter

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"janus.io/janus/internal/fault"
	"janus.io/janus/internal/target"
)

// contentsOf gives, for a kind whose objects hold other objects, the function that
// looks into one of them: a Namespace goes with all that is in it, and a CRD with
// all objects of its kind. It is nil for every other kind.
func (c *Changes) contentsOf(id *target.Identity, kind schema.GroupKind) func(context.Context, *unstructured.Unstructured) ([]string, error) {
	switch kind {
	case target.NamespaceKind:
		return func(ctx context.Context, live *unstructured.Unstructured) ([]string, error) {
			return c.inNamespace(ctx, id, live.GetName())
		}
	case target.CRDKind:
		return func(ctx context.Context, live *unstructured.Unstructured) ([]string, error) {
			planned := target.PlannedKinds(live.Object)
			if len(planned) == 0 {
				return nil, nil
			}
			return listSome(ctx, id.Dynamic.Resource(planned[0].GVR), planned[0].GVR)
		}
	default:
		return nil
	}
}

func (c *Changes) inNamespace(ctx context.Context, id *target.Identity, namespace string) ([]string, error) {
	resources, err := c.resolver.Namespaced()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, gvr := range resources {
		some, err := listSome(ctx, id.Dynamic.Resource(gvr).Namespace(namespace), gvr)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

// listSome lists a few objects, those left out that come and go with their
// container by themselves: what every Namespace is given, events, and locks.
func listSome(ctx context.Context, client dynamic.ResourceInterface, gvr schema.GroupVersionResource) ([]string, error) {
	list, err := client.List(ctx, metav1.ListOptions{Limit: 10})
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(err, "look for contents, list", gvr.GroupResource().String(), false)
	}
	var found []string
	for _, obj := range list.Items {
		name := obj.GetKind() + " " + obj.GetName()
		own := obj.GetLabels()["app.kubernetes.io/managed-by"] == "janus" && gvr.Resource == "leases"
		if !own && !slices.Contains(given, name) && len(found) < 3 {
			found = append(found, fault.Printable(name))
		}
	}
	return found, nil
}

// given is what the control plane puts into every Namespace.
var given = []string{"ConfigMap kube-root-ca.crt", "ServiceAccount default"}
