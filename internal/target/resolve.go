package target

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/objectid"
)

// Resolver finds the resource that serves a kind.
type Resolver struct {
	mapper    meta.ResettableRESTMapper
	discovery discovery.ServerResourcesInterface
	// cached is what the mapper knows; nil if it does not come from discovery.
	cached discovery.ServerResourcesInterface
}

// Discover makes a Resolver that finds out from an API server what it serves.
func Discover(d discovery.DiscoveryInterface) *Resolver {
	cached := memory.NewMemCacheClient(d)
	return &Resolver{mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached), discovery: d, cached: cached}
}

// NewResolver makes a Resolver on top of a mapper.
func NewResolver(mapper meta.ResettableRESTMapper, d discovery.ServerResourcesInterface) *Resolver {
	return &Resolver{mapper: mapper, discovery: d}
}

// Resolve finds the resource of a target. A kind that the mapper does not know
// makes it read discovery once more, so that a CRD installed a moment ago is
// found; a kind that is still not served may be one that planned defines. The
// namespace of a namespaced target defaults to defaultNamespace; naming a
// namespace for a cluster-scoped kind is an error.
func (r *Resolver) Resolve(t api.Target, defaultNamespace string, planned []PlannedKind) (Ref, error) {
	gv, err := schema.ParseGroupVersion(t.APIVersion)
	if err != nil {
		return Ref{}, errclass.New(errclass.Terminal, errclass.Invalid, "resolve", t.String(), "apiVersion %q is malformed", t.APIVersion).
			WithHint("write it as group/version, or version alone for the core group")
	}
	ref := Ref{GVK: gv.WithKind(t.Kind), Namespace: t.Namespace, Name: t.Name}
	gvr, namespaced, err := r.lookup(ref.GVK)
	if err == nil && !namespaced && ref.Namespace != "" {
		r.mapper.Reset() // Its definition may have been deleted, and made again for objects in namespaces.
		gvr, namespaced, err = r.lookup(ref.GVK)
	}
	if err != nil {
		p, ok := findPlanned(planned, ref.GVK)
		if !ok || !meta.IsNoMatchError(err) {
			return Ref{}, explainNoMatch(err, t)
		}
		gvr, namespaced, ref.Deferred = p.GVR, p.Namespaced, true
	}
	ref.GVR = gvr
	switch {
	case namespaced && ref.Namespace == "":
		ref.Namespace = defaultNamespace
	case !namespaced && ref.Namespace != "":
		return Ref{}, errclass.New(errclass.Terminal, errclass.Invalid, "resolve", t.String(), "%s is cluster-scoped", t.Kind).
			WithHint("leave out target.namespace")
	}
	return ref, nil
}

// Refresh forgets what is known of the cluster's kinds: one that is served no more is not
// found out about by itself.
func (r *Resolver) Refresh() { r.mapper.Reset() }

// Serves reports whether the cluster serves a kind.
func (r *Resolver) Serves(apiVersion, kind string) (bool, error) {
	_, err := r.Resolve(api.Target{APIVersion: apiVersion, Kind: kind}, "", nil)
	if errclass.Is(err, errclass.KindNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Served returns the version of a resource that the cluster prefers.
func (r *Resolver) Served(id objectid.ID) (schema.GroupVersionResource, error) {
	gvr, err := r.mapper.ResourceFor(schema.GroupVersionResource{Group: id.Group, Resource: id.Resource})
	if err != nil {
		return gvr, errclass.Wrap(err, "resolve", id.String(), false)
	}
	return gvr, nil
}

// Elsewhere returns a target by a version of its kind that the cluster serves, where the API
// server seems not to serve its own; that is given if it is served after all. There is none
// if the cluster serves the kind no more. It reads discovery again.
func (r *Resolver) Elsewhere(ref Ref) (Ref, bool, error) {
	r.mapper.Reset()
	mapping, err := r.mapper.RESTMapping(ref.GVK.GroupKind(), ref.GVK.Version)
	if meta.IsNoMatchError(err) {
		mapping, err = r.mapper.RESTMapping(ref.GVK.GroupKind())
	}
	if meta.IsNoMatchError(err) {
		if down := r.unavailable(ref.GVK.GroupVersion()); down != nil {
			return Ref{}, false, down
		}
		// Discovery that is empty, as behind a proxy that knows nothing, proves nothing.
		_, err = r.mapper.RESTMapping(NamespaceKind, "v1")
		if err == nil {
			return Ref{}, false, nil
		}
	}
	if err != nil {
		return Ref{}, false, errclass.New(errclass.Unknown, errclass.ServerUnavailable, "resolve", ref.String(), "%w", err)
	}
	ref.GVK, ref.GVR = mapping.GroupVersionKind, mapping.Resource
	return ref, true, nil
}

// Versions returns a target by every other version of its kind that the cluster serves. With
// anew, discovery is read again first.
func (r *Resolver) Versions(ref Ref, anew bool) ([]Ref, error) {
	if anew {
		r.mapper.Reset()
	}
	mappings, err := r.mapper.RESTMappings(ref.GVK.GroupKind())
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errclass.Wrap(err, "discover the versions of", ref.String(), false)
	}
	var out []Ref
	for _, m := range mappings {
		if other := ref; m.GroupVersionKind != ref.GVK {
			other.GVK, other.GVR = m.GroupVersionKind, m.Resource
			out = append(out, other)
		}
	}
	return out, nil
}

// ResolveOwner finds the resource of an owner of an object in a namespace. An
// owner is in the same namespace or cluster-scoped.
func (r *Resolver) ResolveOwner(owner metav1.OwnerReference, namespace string) (Ref, error) {
	return r.Resolve(api.Target{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name}, namespace, nil)
}

// Namespaced returns every namespaced resource of which objects can be listed and deleted,
// events aside: they come and go by themselves. What cannot be deleted, such as the
// metrics of Pods, is not stored in the namespace. It asks the API server again. Resources
// of a group that does not answer are an error: they cannot be left out unseen.
func (r *Resolver) Namespaced() ([]schema.GroupVersionResource, error) {
	lists, err := r.discovery.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, undiscovered(err, "the namespaced resources")
	}
	var out []schema.GroupVersionResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, errclass.New(errclass.Terminal, errclass.Invalid, "discover", list.GroupVersion, "%w", err)
		}
		for _, resource := range list.APIResources {
			if resource.Name != "events" && slices.Contains(resource.Verbs, "list") && slices.Contains(resource.Verbs, "delete") {
				out = append(out, gv.WithResource(resource.Name))
			}
		}
	}
	return out, nil
}

// HasStatus reports whether a resource has the subresource status, by which controllers say
// what has become of an object. Of a group version that discovery does not have yet it is
// taken for granted: anyone who asks has just read an object of it.
func (r *Resolver) HasStatus(gv schema.GroupVersion, resource string) (bool, error) {
	list, err := r.discovery.ServerResourcesForGroupVersion(gv.String())
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, errclass.Wrap(err, "discover", gv.String(), false)
	}
	return slices.ContainsFunc(list.APIResources, func(found metav1.APIResource) bool {
		return found.Name == resource+"/status"
	}), nil
}

func (r *Resolver) lookup(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		r.mapper.Reset()
		mapping, err = r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if meta.IsNoMatchError(err) {
		if down := r.unavailable(gvk.GroupVersion()); down != nil {
			return schema.GroupVersionResource{}, false, down
		}
	}
	if err != nil {
		return schema.GroupVersionResource{}, false, err
	}
	return mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// unavailable is the error of a group and version that is served, by an aggregated API, and
// does not answer: the mapper leaves its kinds out, as if there were none.
func (r *Resolver) unavailable(gv schema.GroupVersion) error {
	if r.discovery == nil {
		return nil
	}
	_, err := r.discovery.ServerResourcesForGroupVersion(gv.String())
	if err == nil || apierrors.IsNotFound(err) || errclass.Is(err, errclass.NotFound) {
		return nil
	}
	return errclass.New(errclass.Unknown, errclass.ServerUnavailable, "discover", gv.String(), "its API does not answer: %w", err).
		WithHint("see `kubectl get apiservice " + gv.Version + "." + gv.Group + "`")
}

func explainNoMatch(err error, t api.Target) error {
	if !meta.IsNoMatchError(err) {
		return errclass.Wrap(err, "resolve", t.String(), false)
	}
	return (&errclass.Error{
		Op: "resolve", Target: t.String(), Class: errclass.Terminal, Reason: errclass.KindNotFound,
		Err: fmt.Errorf("the cluster serves no kind %s in %s", t.Kind, t.APIVersion),
	}).WithHint("see `kubectl api-resources`, or make its CRD in an earlier change of the Transaction")
}
