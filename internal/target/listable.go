package target

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"janus.io/janus/internal/errclass"
)

// Listable returns every resource that can be listed, cluster-scoped or in namespaces,
// events aside. It asks the API server again. Those of a group that does not answer are
// left out.
func (r *Resolver) Listable(namespaced bool) ([]schema.GroupVersionResource, error) {
	lists, err := r.discovery.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, errclass.Wrap(err, "discover", "the resources", false)
	}
	var out []schema.GroupVersionResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if resource.Namespaced == namespaced && resource.Name != "events" && slices.Contains(resource.Verbs, "list") {
				out = append(out, gv.WithResource(resource.Name))
			}
		}
	}
	return out, nil
}

// Kind returns the kind that a resource is of; its name stands for one that is not known.
func (r *Resolver) Kind(gvr schema.GroupVersionResource) string {
	gvk, err := r.mapper.KindFor(gvr)
	if err != nil {
		return gvr.Resource
	}
	return gvk.Kind
}
