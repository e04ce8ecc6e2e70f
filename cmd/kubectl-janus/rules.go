package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ofCluster is the scope of rights that hold in no namespace, or in all.
const ofCluster = ""

// need is a verb on objects of a resource in a namespace: on one of them, or on all.
type need struct {
	scope    string
	resource schema.GroupResource
	name     string
	verb     string
}

// needs are the rights that a Transaction needs, with messages about them.
type needs struct {
	all map[need]bool
	// more are rules that changes of roles take: nobody may grant what they don't have.
	more  map[string][]rbacv1.PolicyRule
	notes []string
}

// unnamed are the verbs that cannot be limited to a name.
var unnamed = []string{"create", "list"}

func (n *needs) add(scope string, resource schema.GroupResource, name string, verbs ...string) {
	for _, verb := range verbs {
		one := need{scope, resource, name, verb}
		if slices.Contains(unnamed, verb) {
			one.name = ""
		}
		n.all[one] = true
	}
}

func (n *needs) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(n.notes, text) {
		n.notes = append(n.notes, text)
	}
}

// scopes lists the namespaces in which there are rights; that of the cluster is the last.
func (n *needs) scopes() []string {
	seen := map[string]bool{}
	for one := range n.all {
		seen[one.scope] = true
	}
	for scope := range n.more {
		seen[scope] = true
	}
	out := slices.Sorted(maps.Keys(seen))
	if len(out) > 0 && out[0] == ofCluster {
		out = append(out[1:], ofCluster)
	}
	return out
}

// rules are those of a namespace: one for the names of a resource that need the same verbs.
func (n *needs) rules(scope string) []rbacv1.PolicyRule {
	type object struct {
		resource schema.GroupResource
		name     string
	}
	verbs := map[object][]string{}
	for one := range n.all {
		if one.scope == scope {
			at := object{one.resource, one.name}
			verbs[at] = append(verbs[at], one.verb)
		}
	}
	type of struct {
		resource schema.GroupResource
		verbs    string
		unnamed  bool
	}
	names := map[of][]string{}
	for at, list := range verbs {
		slices.SortFunc(list, func(a, b string) int { return slices.Index(verbOrder, a) - slices.Index(verbOrder, b) })
		rule := of{at.resource, strings.Join(list, ","), at.name == ""}
		names[rule] = append(names[rule], at.name)
	}
	var out []rbacv1.PolicyRule
	for rule, list := range names {
		one := rbacv1.PolicyRule{APIGroups: []string{rule.resource.Group}, Resources: []string{rule.resource.Resource}, Verbs: strings.Split(rule.verbs, ",")}
		if !rule.unnamed {
			slices.Sort(list)
			one.ResourceNames = list
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources),
			-cmp.Compare(len(a.ResourceNames), len(b.ResourceNames)), slices.Compare(a.ResourceNames, b.ResourceNames))
	})
	return append(out, n.more[scope]...)
}

// verbOrder is the order in which people write them.
var verbOrder = []string{"get", "list", "watch", "create", "update", "patch", "delete", "bind", "escalate"}
