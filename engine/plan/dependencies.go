package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// DependsOn returns the names of the changes that item i depends on, as they are on record. A
// Transaction that an older Janus has accepted has only those in its spec; of one that deletes its
// target instead none are on record.
func DependsOn(t *api.Transaction, i int) []string {
	if i < len(t.Status.Items) && len(t.Status.Items[i].DependsOn) > 0 {
		return t.Status.Items[i].DependsOn
	}
	if i < len(t.Spec.Changes) && !DeletesInstead(t, i) {
		return t.Spec.Changes[i].DependsOn
	}
	return nil
}

// dependencies are the items that each item depends on: earlier ones in the order, whatever
// another client has made of the spec. It is nil if there are none.
func dependencies(t *api.Transaction, order []int) [][]int {
	var out [][]int
	earlier := map[string]int{}
	for n, i := range order {
		if i >= len(t.Status.Items) {
			return nil
		}
		for _, name := range DependsOn(t, i) {
			if out == nil {
				out = make([][]int, len(t.Status.Items))
				for _, j := range order[:n] {
					earlier[t.Status.Items[j].Name] = j
				}
			}
			if j, ok := earlier[name]; ok {
				out[i] = append(out[i], j)
			}
		}
		if out != nil {
			earlier[t.Status.Items[i].Name] = i
		}
	}
	return out
}

// below returns what an item depends on, and what that depends on.
func below(on [][]int, i int) []int {
	if on == nil {
		return nil
	}
	var out []int
	seen := map[int]bool{i: true}
	for next := on[i]; len(next) > 0; {
		var deeper []int
		for _, j := range next {
			if !seen[j] {
				seen[j] = true
				out, deeper = append(out, j), append(deeper, on[j]...)
			}
		}
		next = deeper
	}
	slices.Sort(out)
	return out
}

// isBlocked reports whether an item is in effect for no other reason than that another one is.
func isBlocked(item *api.Item) bool {
	return item.State == api.ItemUnresolved && item.Reason == errclass.Blocked && item.BlockedBy != ""
}

// homesOf are what must exist before an object can: its namespace, and something that
// defines its group.
func homesOf(t api.Target) []string {
	group := t.APIVersion // identity has left the group alone
	return []string{"namespace " + t.Namespace, "group " + group}
}

// homeMadeBy is what the object of a Create makes room for, if it does; or that of a change that may
// delete it.
func homeMadeBy(c api.Change) string {
	gv, err := schema.ParseGroupVersion(c.Target.APIVersion)
	switch {
	case err != nil || c.Type != api.Create && !deletesIfFalse(&c):
	case gv.Group == "" && c.Target.Kind == "Namespace":
		return "namespace " + c.Target.Name
	case gv.Group == "apiextensions.k8s.io" && c.Target.Kind == "CustomResourceDefinition":
		if _, group, ok := strings.Cut(c.Target.Name, "."); ok {
			return "group " + group
		}
	}
	return ""
}
