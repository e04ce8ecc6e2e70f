package wiring

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
)

// contentsOf returns, for a kind whose objects hold other objects, the function that
// looks into one of them: a Namespace goes with all that is in it, and a CRD with
// all objects of its kind. It is nil for every other kind.
func (c *Changes) contentsOf(id *target.Identity, kind schema.GroupKind) func(context.Context, *unstructured.Unstructured) (mutate.Contents, error) {
	look := func() *holding { return &holding{Changes: c, id: id, going: map[apitypes.UID]bool{}} }
	switch kind {
	case target.NamespaceKind:
		return func(ctx context.Context, live *unstructured.Unstructured) (mutate.Contents, error) {
			return look().inNamespace(ctx, live.GetName())
		}
	case target.CRDKind:
		return func(ctx context.Context, live *unstructured.Unstructured) (mutate.Contents, error) {
			var found mutate.Contents
			planned := target.PlannedKinds(live.Object)
			if len(planned) == 0 {
				return found, nil
			}
			err := look().listSome(ctx, id.Dynamic.Resource(planned[0].GVR), planned[0].GVR, &found)
			return found, err
		}
	default:
		return nil
	}
}

// holding is one look at what an object holds.
type holding struct {
	*Changes
	id *target.Identity
	// going are the owners that were asked about: whether they are gone, or on their way
	// out.
	going map[apitypes.UID]bool
}

func (c *holding) inNamespace(ctx context.Context, namespace string) (mutate.Contents, error) {
	var found mutate.Contents
	resources, err := c.resolver.Namespaced()
	if err != nil {
		return found, err
	}
	for _, gvr := range resources {
		if err := c.listSome(ctx, c.id.Dynamic.Resource(gvr).Namespace(namespace), gvr, &found); err != nil {
			return found, err
		}
	}
	return found, nil
}

// most is how many objects of a resource are named.
const most = 3

// listSome lists a few objects, those left out that come and go with their
// container by themselves: what every Namespace is given, events, and locks.
func (c *holding) listSome(ctx context.Context, client dynamic.ResourceInterface, gvr schema.GroupVersionResource, found *mutate.Contents) error {
	list, err := client.List(ctx, metav1.ListOptions{Limit: 10})
	if errclass.Is(err, errclass.NotFound) || errclass.Is(err, errclass.Invalid) {
		return nil
	}
	if err != nil {
		return errclass.Wrap(err, "look for contents, list", gvr.GroupResource().String(), false)
	}
	stay, leave := 0, 0
	for n := range list.Items {
		obj := &list.Items[n]
		name := obj.GetKind() + " " + obj.GetName()
		if own := obj.GetLabels()["app.kubernetes.io/managed-by"] == "janus" && gvr.Resource == "leases"; own || slices.Contains(givenObjects, name) {
			continue
		}
		leaves, err := c.leaves(ctx, obj, maxOwners)
		switch {
		case err != nil:
			return err
		case leaves && leave < most:
			leave, found.Leave = leave+1, append(found.Leave, errclass.Printable(name))
		case !leaves && stay < most:
			stay, found.Stay = stay+1, append(found.Stay, errclass.Printable(name))
		}
	}
	return nil
}

// maxOwners is how long a chain of owners is followed: that of a Pod of a CronJob has three.
const maxOwners = 8

// leaves reports whether an object is about to go by itself: it is being deleted, or the
// garbage collector takes it along because all its owners are gone, or go themselves.
func (c *holding) leaves(ctx context.Context, obj *unstructured.Unstructured, depth int) (bool, error) {
	if obj.GetDeletionTimestamp() != nil {
		return true, nil
	}
	owners := obj.GetOwnerReferences()
	if len(owners) == 0 {
		return c.outlivesItsService(ctx, obj)
	}
	if depth == 0 {
		return false, nil
	}
	for _, owner := range owners {
		goes, known := c.going[owner.UID]
		if !known {
			var err error
			if goes, err = c.goes(ctx, owner, obj.GetNamespace(), depth); err != nil {
				return false, err
			}
			c.going[owner.UID] = goes
		}
		if !goes {
			return false, nil
		}
	}
	return true, nil
}

// goes reports whether an owner is gone, or about to go. Of one that the ServiceAccount may
// not read, or whose kind is not served, that cannot be told: it counts as there.
func (c *holding) goes(ctx context.Context, owner metav1.OwnerReference, namespace string, depth int) (bool, error) {
	ref, err := c.resolver.ResolveOwner(owner, namespace)
	if errclass.Is(err, errclass.KindNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	live, there, err := c.owner(ctx, ref)
	switch {
	case err != nil:
		return false, err
	case !there, live != nil && live.GetUID() != owner.UID:
		return true, nil
	case live == nil:
		return false, nil
	default:
		return c.leaves(ctx, live, depth-1)
	}
}

// owner reads an owner as the ServiceAccount: nil and false if there is none, nil and true
// if it may not be seen.
func (c *holding) owner(ctx context.Context, ref target.Ref) (*unstructured.Unstructured, bool, error) {
	live, err := target.Confirmed(func() (*unstructured.Unstructured, error) {
		return c.id.Resource(ref).Get(ctx, ref.Name, metav1.GetOptions{})
	})
	switch {
	case errclass.Unserved(err), errclass.Is(err, errclass.AccessDenied):
		return nil, true, nil
	case errclass.Is(err, errclass.NotFound), errclass.Is(err, errclass.NamespaceNotFound):
		return nil, false, nil
	case err != nil:
		return nil, false, errclass.Wrap(err, "read the owner", ref.String(), false)
	default:
		return live, true, nil
	}
}

// outlivesItsService reports whether an object is the Endpoints of a Service that is gone:
// they have no owner, and their controller deletes them.
func (c *holding) outlivesItsService(ctx context.Context, obj *unstructured.Unstructured) (bool, error) {
	entries := obj.GetManagedFields()
	byHand := slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return !fieldmerge.ControlPlane(e.Manager) })
	if obj.GetKind() != "Endpoints" || obj.GetAPIVersion() != "v1" || byHand || len(entries) == 0 {
		return false, nil
	}
	service := schema.GroupVersion{Version: "v1"}
	_, there, err := c.owner(ctx, target.Ref{
		GVK: service.WithKind("Service"), GVR: service.WithResource("services"), Namespace: obj.GetNamespace(), Name: obj.GetName(),
	})
	return err == nil && !there, err
}

// givenObjects is what the control plane puts into every Namespace.
var givenObjects = []string{"ConfigMap kube-root-ca.crt", "ServiceAccount default"}
