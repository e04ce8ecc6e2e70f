package mutate

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate/kinds"
)

// byDefinition says why the definition of a custom resource would have a rollback from after to before
// refused, or else warns where it may. The definition is read as the ServiceAccount; one that may not
// read definitions is told nothing.
func (c Change) byDefinition(ctx context.Context, before, after *unstructured.Unstructured) (why string, warnings []string, err error) {
	if scheme.Scheme.IsGroupRegistered(c.Ref.GVK.Group) {
		return "", nil, nil
	}
	definition, err := c.Environment.Cluster.Resource(kinds.Definitions).Get(ctx, c.Ref.GVR.GroupResource().String(), metav1.GetOptions{})
	switch class := errclass.ClassOf(err); {
	case err != nil && (class == errclass.Retryable || class == errclass.Unknown):
		return "", nil, errclass.Wrap(err, "read the definition of", c.Ref.String(), false)
	case err != nil:
		return "", nil, nil
	}
	if why, err = c.outgrown(ctx, definition, before, after); why != "" || err != nil {
		return why, nil, err
	}
	return "", c.transitions(definition, before, after), nil
}

// transitions warns of the rules in the definition of a custom resource that look at the
// object as it was before a write: they may let a change pass and not its way back.
func (c Change) transitions(definition, before, after *unstructured.Unstructured) []string {
	var out []string
	for _, rule := range kinds.TransitionRules(definition.Object, c.Ref.GVK.Version, before.Object, after.Object) {
		if len(out) == kinds.MaxRules {
			break
		}
		out = append(out, c.warn("a rollback may be refused by a transition rule of its definition: "+c.path(rule.Path)+": "+errclass.Printable(rule.Text))...)
	}
	return out
}
