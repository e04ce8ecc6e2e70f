package deploy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
)

// beyond are resources by which anyone who acts as a ServiceAccount would be free of the constraints, have
// more rights, or decide over requests of others.
var beyond = []string{
	"*", "serviceaccounts/token", "pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "services/proxy", "nodes/proxy", "pods/ephemeralcontainers",
	"roles", "rolebindings", "clusterroles", "clusterrolebindings", "certificatesigningrequests", "certificatesigningrequests/approval",
	"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
	"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "apiservices", "nodes", "users", "groups", "tokenreviews", "subjectaccessreviews",
	"leases", "transactions", "locktables", "packagetransactions",
}

// TestConstrainedImpersonationNamesWhatIsActedOn reads all rights by which janusd acts as others: none
// is for everything, and janusd has no right to impersonate beside them.
func TestConstrainedImpersonationNamesWhatIsActedOn(t *testing.T) {
	all := func(values string) (rules []rbacv1.PolicyRule, bindings []string) {
		for _, object := range rendered(t, values) {
			switch object.GetKind() {
			case "ClusterRole":
				rules = append(rules, into[rbacv1.ClusterRole](t, object).Rules...)
			case "Role":
				rules = append(rules, into[rbacv1.Role](t, object).Rules...)
			case "RoleBinding", "ClusterRoleBinding":
				if strings.HasPrefix(object.GetName(), "janusd-a") { // -acts-as, -acts-on, -asks-as
					bindings = append(bindings, object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName())
				}
			}
		}
		return rules, bindings
	}
	const kinds = "kinds: [{group: example.com, resources: [widgets, widgets/status]}]"
	for values, want := range map[string][]string{
		"constrainedImpersonation: {enabled: true, " + kinds + "}": {
			"ClusterRoleBinding /janusd-acts-as-janus-system", "ClusterRoleBinding /janusd-acts-on-janus-system", "ClusterRoleBinding /janusd-asks-as-janus-system",
		},
		"constrainedImpersonation: {enabled: true, namespaces: [orders, shop], " + kinds + "}": {
			"RoleBinding orders/janusd-acts-as-janus-system", "RoleBinding orders/janusd-acts-on-janus-system", "RoleBinding shop/janusd-acts-as-janus-system",
			"RoleBinding shop/janusd-acts-on-janus-system", "ClusterRoleBinding /janusd-asks-as-janus-system",
		},
		"{namespaced: [{namespace: shop, serviceAccounts: [deploy-sa]}], constrainedImpersonation: {enabled: true, " + kinds + "}}": {
			"RoleBinding shop/janusd-acts-on-janus-system", "ClusterRoleBinding /janusd-asks-as-janus-system",
		},
	} {
		rules, bindings := all(values)
		assert.ElementsMatch(t, want, bindings, "%s", values)
		seen := 0
		for _, rule := range rules {
			if slices.Contains(rule.Verbs, "impersonate:serviceaccount") {
				require.Len(t, rule.Verbs, 1)
				assert.Equal(t, []string{"serviceaccounts"}, rule.Resources)
				if strings.Contains(values, "namespaced") {
					assert.Equal(t, []string{"deploy-sa"}, rule.ResourceNames)
				}
				continue
			}
			for _, verb := range rule.Verbs {
				assert.NotEqual(t, "impersonate", verb, "%s: %v", values, rule)
				assert.NotEqual(t, "*", verb)
				if on, acts := strings.CutPrefix(verb, "impersonate-on:serviceaccount:"); acts {
					seen++
					assert.Contains(t, []string{"get", "list", "watch", "create", "update", "patch", "delete"}, on)
					for _, resource := range rule.Resources {
						assert.NotContains(t, beyond, resource)
					}
					assert.NotContains(t, rule.APIGroups, "*")
				}
			}
		}
		assert.Greater(t, seen, 20)
	}
}
