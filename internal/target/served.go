package target

import (
	"errors"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"

	"janus.io/janus/internal/errclass"
)

// ServedKind is a kind that the cluster serves, in one of its versions.
type ServedKind struct {
	GVK        schema.GroupVersionKind
	Resource   string
	Namespaced bool
}

// Kinds returns every kind that the cluster serves, in every version. It asks the API server
// again. If a group does not answer it returns an error: what it serves is not known.
func (r *Resolver) Kinds() ([]ServedKind, error) {
	_, lists, err := r.discovery.ServerGroupsAndResources()
	if err != nil {
		return nil, undiscovered(err, "the kinds that are served")
	}
	var out []ServedKind
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, errclass.New(errclass.Terminal, errclass.Invalid, "discover", list.GroupVersion, "%w", err)
		}
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") { // A subresource may be of a kind of another group.
				out = append(out, ServedKind{GVK: gv.WithKind(resource.Kind), Resource: resource.Name, Namespaced: resource.Namespaced})
			}
		}
	}
	return out, nil
}

// undiscovered is the error of a discovery. Where groups do not answer it names them: another server
// has them.
func undiscovered(err error, what string) error {
	var failed *discovery.ErrGroupDiscoveryFailed
	if !errors.As(err, &failed) {
		return errclass.Wrap(err, "discover", what, false)
	}
	var names []string
	for gv := range maps.Keys(failed.Groups) {
		names = append(names, gv.String())
	}
	slices.Sort(names)
	out := errclass.New(errclass.Retryable, errclass.ServerUnavailable, "discover", what, "these APIs do not answer: %s", strings.Join(names, ", ")).
		WithHint("see `kubectl get apiservices`")
	out.Refuser = errclass.ByDeadAPI
	return out
}

// Verbs returns what can be asked of a resource; nil if that is not known. If one that is wanted is
// missing it asks the API server again: that of a definition on its way out has fewer.
func (r *Resolver) Verbs(gvr schema.GroupVersionResource, wanted ...string) ([]string, error) {
	if r.cached == nil {
		return nil, nil
	}
	verbs, err := r.verbs(gvr)
	if err == nil && verbs != nil && Lacking(verbs, wanted) != nil {
		r.mapper.Reset()
		verbs, err = r.verbs(gvr)
	}
	return verbs, err
}

// Lacking are those of the verbs wanted that are not among the others.
func Lacking(verbs, wanted []string) (lacking []string) {
	for _, verb := range wanted {
		if !slices.Contains(verbs, verb) {
			lacking = append(lacking, verb)
		}
	}
	return lacking
}

func (r *Resolver) verbs(gvr schema.GroupVersionResource) ([]string, error) {
	list, err := r.cached.ServerResourcesForGroupVersion(gvr.GroupVersion().String())
	if apierrors.IsNotFound(err) || errors.Is(err, memory.ErrCacheNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, errclass.Wrap(err, "discover", gvr.String(), false)
	}
	for _, found := range list.APIResources {
		if found.Name == gvr.Resource {
			return found.Verbs, nil
		}
	}
	return nil, nil
}

// VersionsOf returns the versions in which the cluster serves a resource, sorted. It asks the API
// server again.
func (r *Resolver) VersionsOf(resource schema.GroupResource) ([]string, error) {
	r.mapper.Reset()
	found, err := r.mapper.KindsFor(schema.GroupVersionResource{Group: resource.Group, Resource: resource.Resource})
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errclass.Wrap(err, "discover the versions of", resource.String(), false)
	}
	var out []string
	for _, gvk := range found {
		if gvk.Group == resource.Group { // The mapper takes the beginning of a group for it.
			out = append(out, gvk.Version)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// CutDefinition cuts the name of a CustomResourceDefinition or an APIService into what is before the
// group, and the group.
func CutDefinition(name string) (before, group string) {
	before, group, _ = strings.Cut(name, ".")
	return before, group
}

// Answers reports whether the API server serves a group and version. One that is registered and
// does not answer is an error.
func (r *Resolver) Answers(gv schema.GroupVersion) (bool, error) {
	_, err := r.discovery.ServerResourcesForGroupVersion(gv.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, errclass.Wrap(err, "discover", gv.String(), false)
	}
	return true, nil
}
