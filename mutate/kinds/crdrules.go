package kinds

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
)

// MaxRules is how many transition rules one change is warned of.
const MaxRules = 3

var namesOldSelf = regexp.MustCompile(`\boldSelf\b`)

// TransitionRule is a rule that names oldSelf, at or above a field that changes. With Creation it is one
// for the creation of an object too, and may ask more of that than of an update.
type TransitionRule struct {
	Path, Text string
	Creation   bool
}

// TransitionRules returns the rules of a version of a CustomResourceDefinition that look at the object
// as it was, at or above a field that changes.
func TransitionRules(definition map[string]any, version string, before, after map[string]any) []TransitionRule {
	for _, v := range versions(definition) {
		if v["name"] == version {
			root, _ := field(v, "schema", "openAPIV3Schema").(map[string]any)
			return walkRules(root, "", before, after)
		}
	}
	return nil
}

func walkRules(node map[string]any, path string, before, after any) []TransitionRule {
	if node == nil || reflect.DeepEqual(before, after) {
		return nil
	}
	var out []TransitionRule
	rules, _ := node["x-kubernetes-validations"].([]any)
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		text, _ := rule["rule"].(string)
		if namesOldSelf.MatchString(text) {
			if message, ok := rule["message"].(string); ok && message != "" {
				text = fmt.Sprintf("%s (%s)", message, text)
			}
			out = append(out, TransitionRule{max(path, "."), text, rule["optionalOldSelf"] == true})
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
