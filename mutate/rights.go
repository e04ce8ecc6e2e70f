package mutate

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/mutate/kinds"
)

// Verbs are those that a ServiceAccount needs on the target of a change of a type: to make it,
// and to roll it back.
func Verbs(t api.ChangeType) (making, rollingBack []string) {
	if t == api.Await {
		return []string{"get"}, nil
	}
	if known, ok := strategies[t]; ok {
		return known.strategy.Verbs()
	}
	return nil, nil
}

// VerbsWithUndo are those that are needed too once the change has committed and another
// Transaction undoes it, and rolls that back if it fails.
func VerbsWithUndo(t api.ChangeType) []string {
	var out []string
	for _, of := range []api.ChangeType{t, strategies[t].inverse} {
		making, rollingBack := Verbs(of)
		out = append(append(out, making...), rollingBack...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Right is what a ServiceAccount needs on other objects than the target of a change.
type Right struct {
	// Resource may have a subresource, as in widgets/status.
	Resource schema.GroupResource
	// OfCluster says that the objects have no namespace; otherwise they are in that of the target.
	OfCluster bool
	// Namesake says that it is one object, which has the name of the target.
	Namesake bool
	Verbs    []string
}

// RightsBeside are those that a change needs beside the verbs on its target so that it can be made,
// rolled back and undone: to look for what would go with the target, and to restore what a creation
// drops. What is only looked at for a warning is left out.
func RightsBeside(t api.ChangeType, kind schema.GroupKind, resource schema.GroupResource) []Right {
	switch {
	case t == api.Create, t == api.Delete:
	case t == api.Await:
		return nil
	case kind == kinds.StatefulSet:
		return []Right{{Resource: kinds.Claims.GroupResource(), Verbs: []string{"list"}}}
	case kind == kinds.Service:
		return []Right{{Resource: kinds.Endpoints.GroupResource(), Namesake: true, Verbs: []string{"get"}}}
	default:
		return nil
	}
	var out []Right
	adopts, custom := kinds.Adopts(kind)
	for _, gvr := range adopts {
		out = append(out, Right{Resource: gvr.GroupResource(), Verbs: []string{"list"}})
	}
	if custom {
		resource.Resource += "/status"
		out = append(out, Right{Resource: resource, Namesake: true, Verbs: []string{"patch"}})
	}
	if kind == kinds.Claim {
		out = append(out, Right{Resource: kinds.Volumes.GroupResource(), OfCluster: true, Verbs: []string{"get", "list", "patch"}})
	}
	return out
}
