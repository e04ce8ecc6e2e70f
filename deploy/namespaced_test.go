package deploy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
)

// granted lists what rules allow, verb by verb.
func granted(t *testing.T, rules []rbacv1.PolicyRule) []string {
	t.Helper()
	var out []string
	for _, rule := range rules {
		require.Empty(t, rule.NonResourceURLs)
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					one := fmt.Sprintf("%s %s.%s", verb, resource, group)
					if len(rule.ResourceNames) > 0 {
						one += " " + strings.Join(rule.ResourceNames, ",")
					}
					out = append(out, one)
				}
			}
		}
	}
	return out
}

// TestRightsInNamespacedMode reads them whole: they are those of the cluster-wide
// installation in one namespace, but for acting as any ServiceAccount, and next to nothing
// elsewhere. That they suffice is shown in test/e2e/packages.
func TestRightsInNamespacedMode(t *testing.T) {
	in := installation{objects: build(t, "overlays/namespaced")}
	rights, bound := map[string][]string{}, map[string]string{}
	for _, object := range in.objects {
		place := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
		switch object.GetKind() {
		case "Role":
			rights[place] = granted(t, into[rbacv1.Role](t, object).Rules)
		case "ClusterRole":
			if strings.HasPrefix(object.GetName(), "janusd") {
				rights[place] = granted(t, into[rbacv1.ClusterRole](t, object).Rules)
			}
		case "ClusterRoleBinding":
			bound[object.GetName()] = into[rbacv1.ClusterRoleBinding](t, object).RoleRef.Name
		}
	}
	assert.Equal(t, map[string]string{"janusd-metrics-janus-system": "system:auth-delegator"}, bound)

	var there []string
	for _, g := range own {
		switch one := g.String(); one {
		case "create subjectaccessreviews.authorization.k8s.io", "create tokenreviews.authentication.k8s.io":
			// They are no rights in a namespace: system:auth-delegator has them.
		case "list leases.coordination.k8s.io":
			// Those of all namespaces are listed, or none.
		case "impersonate serviceaccounts.":
			there = append(there, one+" deploy-sa")
		default:
			there = append(there, one)
		}
	}
	slices.Sort(there)
	for _, all := range rights {
		slices.Sort(all)
	}
	assert.Equal(t, map[string][]string{
		"Role shop/janusd": there,
		"Role janus-system/janusd-leader-election": {
			"create leases.coordination.k8s.io", "delete leases.coordination.k8s.io", "get leases.coordination.k8s.io",
			"list leases.coordination.k8s.io", "update leases.coordination.k8s.io",
		},
		"Role janus-system/janusd-own-namespace":  {"create configmaps.", "get namespaces.", "patch configmaps. janus-settings"},
		"Role janus-system/janus-settings-reader": {"get configmaps. janus-settings"},
	}, rights)
}
