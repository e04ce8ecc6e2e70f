package harness

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"janus.io/janus/internal/expression"
)

// Kinds lists the kinds that an API server serves, in every version.
func Kinds(from discovery.ServerResourcesInterface) ([]expression.Kind, error) {
	_, lists, err := from.ServerGroupsAndResources()
	if err != nil {
		return nil, fmt.Errorf("discover the kinds that are served: %w", err)
	}
	var out []expression.Kind
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("discover the kinds that are served: %w", err)
		}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") { // A subresource may be of a kind of another group.
				out = append(out, expression.Kind{Group: gv.Group, Version: gv.Version, Kind: r.Kind, Resource: r.Name, Namespaced: r.Namespaced})
			}
		}
	}
	return out, nil
}
