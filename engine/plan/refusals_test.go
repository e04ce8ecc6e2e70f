package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
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
			assert.Equal(t, c.want, Decides(itemOf(c.item), itemOf(c.other), c.reason))
		})
	}
}

// A compensation waits for what it depends on only where that may be what refuses it: the rest
// stays, should the refusal be the last word.
func TestWhatIsRolledBackBeforeAnItemThatDependsOnIt(t *testing.T) {
	webhookDown := errclass.Wrap(apierrors.NewInternalError(errors.New(
		`failed calling webhook "w.shop": failed to call webhook: Post "https://hook.shop.svc:443/": dial tcp: connection refused`)), "delete", "ConfigMap shop/web", false)
	refusal := func(reason string) error {
		return errclass.New(errclass.Terminal, reason, "delete", "ConfigMap shop/web", "no")
	}
	by := func(refuser errclass.Refuser) error {
		err := errclass.New(errclass.Unknown, errclass.ServerUnavailable, "delete", "ConfigMap shop/web", "no")
		err.Refuser = refuser
		return err
	}
	for _, c := range []struct {
		what    string
		change  api.ChangeType
		item    string
		refusal error
		want    bool
	}{
		{"a ConfigMap", api.Create, "v1 ConfigMap configmaps shop cfg", refusal(errclass.AccessDenied), false},
		{"a policy that was made", api.Create, "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy validatingadmissionpolicies - p", refusal(errclass.Rejected), true},
		{"a quota that was made", api.Create, "v1 ResourceQuota resourcequotas shop q", refusal(errclass.Rejected), true},
		{"a role that was made", api.Create, "rbac.authorization.k8s.io/v1 Role roles shop r", refusal(errclass.AccessDenied), false},
		{"a role that was deleted", api.Delete, "rbac.authorization.k8s.io/v1 Role roles shop r", refusal(errclass.AccessDenied), true},
		{"a Namespace that was made", api.Create, "v1 Namespace namespaces - shop", refusal(errclass.Rejected), false},
		{"a Namespace that was given a level", api.Patch, "v1 Namespace namespaces - shop", refusal(errclass.Rejected), true},
		{"a definition that was made stricter", api.Patch, crdOf("webs.example.com"), refusal(errclass.Invalid), true},
		{"a definition that was made", api.Create, crdOf("webs.example.com"), refusal(errclass.Invalid), false},
		{"a Service, where a port is taken", api.Patch, "v1 Service services shop b", refusal(errclass.AlreadyAllocated), false},
		{"what is behind a webhook that does not answer", api.Patch, "apps/v1 Deployment deployments shop hook", webhookDown, true},
		{"an API that does not answer", api.Create, "apiregistration.k8s.io/v1 APIService apiservices - v1.example.com", by(errclass.ByDeadAPI), true},
		{"a definition, where an API does not answer", api.Patch, crdOf("webs.example.com"), by(errclass.ByDeadAPI), false},
		{"a definition that got a conversion", api.Patch, crdOf("webs.example.com"), by(errclass.ByConversion), true},
		{"a definition that was made with a conversion", api.Create, crdOf("webs.example.com"), by(errclass.ByConversion), false},
		{"a quota that has not been counted", api.Create, "v1 ResourceQuota resourcequotas shop q", by(errclass.ByUncountedQuota), true},
		{"such a quota elsewhere", api.Create, "v1 ResourceQuota resourcequotas other q", by(errclass.ByUncountedQuota), false},
		{"a Deployment elsewhere", api.Patch, "apps/v1 Deployment deployments other hook", webhookDown, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			txn := fixture.Transaction("dep", "web")
			txn.Spec.Changes[0].Type = c.change
			txn.Spec.Changes[1].DependsOn = []string{"dep"}
			web := itemOf("example.com/v1 Web webs shop web")
			txn.Status.Items = []api.Item{*itemOf(c.item), *web}
			txn.Status.Items[0].Name, txn.Status.Items[1].Name = "dep", "web"
			SetAside(txn, &txn.Status.Items[1], 1, c.refusal)
			var want []string
			if c.want {
				want = []string{"dep"}
			}
			assert.True(t, txn.Status.Items[1].SetAside)
			assert.Equal(t, want, txn.Status.Items[1].SetAsideFor)
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
