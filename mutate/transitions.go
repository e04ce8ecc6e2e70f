package mutate

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"janus.io/janus/internal/errclass"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// maxRules is how many transition rules one change is warned of.
const maxRules = 3

// transitions warns of the rules in the definition of a custom resource that look at the
// object as it was before a write: they may let a change pass and not its way back. Which
// they are is read as the ServiceAccount; one that may not read definitions is not warned.
func (c Change) transitions(ctx context.Context, before, after *unstructured.Unstructured) ([]string, error) {
	if c.Cluster == nil || scheme.Scheme.IsGroupRegistered(c.Ref.GVK.Group) {
		return nil, nil
	}
	definition, err := c.Cluster.Resource(definitions).Get(ctx, c.Ref.GVR.GroupResource().String(), metav1.GetOptions{})
	switch class := errclass.ClassOf(err); {
	case err != nil && (class == errclass.Retryable || class == errclass.Unknown):
		return nil, errclass.Wrap(err, "read the definition of", c.Ref.String(), false)
	case err != nil:
		return nil, nil
	}
	var out []string
	for _, rule := range rulesOf(definition.Object, c.Ref.GVK.Version, before.Object, after.Object) {
		if len(out) == maxRules {
			break
		}
		out = append(out, c.warn("a rollback may be refused by a transition rule of its definition: "+c.path(rule.path)+": "+errclass.Printable(rule.text))...)
	}
	return out, nil
}

// transition is a rule that names oldSelf, at or above a field that changes.
type transition struct{ path, text string }

func rulesOf(definition map[string]any, version string, before, after map[string]any) []transition {
	for _, v := range versions(definition) {
		if v["name"] == version {
			root, _ := field(v, "schema", "openAPIV3Schema").(map[string]any)
			return walkRules(root, "", before, after)
		}
	}
	return nil
}

var namesOldSelf = regexp.MustCompile(`\boldSelf\b`)

func walkRules(node map[string]any, path string, before, after any) []transition {
	if node == nil || reflect.DeepEqual(before, after) {
		return nil
	}
	var out []transition
	rules, _ := node["x-kubernetes-validations"].([]any)
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		text, _ := rule["rule"].(string)
		if namesOldSelf.MatchString(text) {
			if message, ok := rule["message"].(string); ok && message != "" {
				text = fmt.Sprintf("%s (%s)", message, text)
			}
			out = append(out, transition{max(path, "."), text})
		}
	}
	properties, _ := node["properties"].(map[string]any)
	was, _ := before.(map[string]any)
	is, _ := after.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		child, _ := properties[name].(map[string]any)
		out = append(out, walkRules(child, path+"."+name, was[name], is[name])...)
	}
	for _, name := range []string{"items", "additionalProperties"} {
		// Which of the elements has changed does not matter for a warning.
		if child, ok := node[name].(map[string]any); ok {
			out = append(out, walkRules(child, path+"[*]", before, after)...)
		}
	}
	return out
}
