package wiring

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

func TestWhatDecidesWhetherAnotherObjectMayBeWritten(t *testing.T) {
	for _, c := range []struct {
		what        string
		item, other string // apiVersion kind resource namespace name
		reason      string
		want        bool
	}{
		{"the definition of its kind, where a value is refused", crdOf("limits.example.com"), "example.com/v1 Limit limits shop big", errclass.Invalid, true},
		{"the definition of another kind", crdOf("others.example.com"), "example.com/v1 Limit limits shop big", errclass.Invalid, false},
		{"the definition of its kind, where a right is missing", crdOf("limits.example.com"), "example.com/v1 Limit limits shop big", errclass.AccessDenied, false},
		{"a policy", "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings - small", "v1 ConfigMap configmaps shop a", errclass.Invalid, true},
		{"a webhook", "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations - small", "v1 ConfigMap configmaps shop a", errclass.Rejected, true},
		{"a quota of its namespace", "v1 ResourceQuota resourcequotas shop q", "v1 Service services shop a", errclass.Rejected, true},
		{"a quota of another namespace", "v1 ResourceQuota resourcequotas other q", "v1 Service services shop a", errclass.Rejected, false},
		{"its namespace, whose labels set a level", "v1 Namespace namespaces - shop", "v1 Pod pods shop a", errclass.Rejected, true},
		{"a role, where a binding lacks one", "rbac.authorization.k8s.io/v1 Role roles shop r", "rbac.authorization.k8s.io/v1 RoleBinding rolebindings shop r", errclass.NotFound, true},
		{"a role, where something else is missing", "rbac.authorization.k8s.io/v1 Role roles shop r", "v1 ConfigMap configmaps shop a", errclass.NotFound, false},
		{"a Service, where a port is taken", "v1 Service services shop b", "v1 Service services shop a", errclass.AlreadyAllocated, true},
		{"any object, where another client has written a field", "v1 ConfigMap configmaps shop b", "v1 ConfigMap configmaps shop a", errclass.FieldConflict, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			assert.Equal(t, c.want, decides(itemOf(c.item), itemOf(c.other), c.reason))
		})
	}
}

func crdOf(name string) string {
	return "apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions - " + name
}

func itemOf(text string) *api.Item {
	words := strings.Fields(strings.ReplaceAll(text, " - ", "  "))
	item := &api.Item{Target: api.Target{APIVersion: words[0], Kind: words[1], Name: words[len(words)-1]}, Resource: words[2]}
	if len(words) == 5 {
		item.Target.Namespace = words[3]
	}
	return item
}
