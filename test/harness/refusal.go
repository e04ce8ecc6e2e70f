package harness

import (
	"context"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refusal is a policy that refuses to make ConfigMaps named refused-…, unless it is a
// dry run: a Transaction with such a change is prepared, and refused while it commits.
const refusal = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  matchConditions: [{name: refused, expression: "request.name.startsWith('refused-')"}]
  validations: [{expression: "has(request.dryRun) && request.dryRun", message: it is refused, reason: Forbidden}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec:
  policyName: NAME
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {LABEL: "VALUE"}}}
`

// ApplyRefusal makes the API server refuse ConfigMaps named refused-… when they are
// made, but not their dry run, in the namespaces with a label. The name is that of the
// policy. It takes a moment until it is in force, see Refuses.
func (c *Client) ApplyRefusal(ctx context.Context, name, label, value string) error {
	return c.ApplyYAML(ctx, "", strings.NewReplacer("NAME", name, "LABEL", label, "VALUE", value).Replace(refusal))
}

// RefuseIn is ApplyRefusal for one namespace, whose name the policy has too.
func (c *Client) RefuseIn(ctx context.Context, namespace string) error {
	return c.ApplyRefusal(ctx, namespace, corev1.LabelMetadataName, namespace)
}

// Refuses reports whether the policy is in force in a namespace. It leaves nothing
// there.
func (c *Client) Refuses(ctx context.Context, namespace string) bool {
	const probe = "refused-probe"
	configMaps := c.Kube.CoreV1().ConfigMaps(namespace)
	_, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: probe}}, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		_ = configMaps.Delete(ctx, probe, metav1.DeleteOptions{})
	}
	return apierrors.IsForbidden(err)
}

// Refuse makes the policy for the namespace of the test, until that ends, and returns
// when it is in force.
func (e *Env) Refuse() {
	e.t.Helper()
	require.NoError(e.t, e.RefuseIn(e.Context(), e.Namespace))
	e.t.Cleanup(func() {
		admission := e.Kube.AdmissionregistrationV1()
		_ = admission.ValidatingAdmissionPolicyBindings().Delete(context.Background(), e.Namespace, metav1.DeleteOptions{})
		_ = admission.ValidatingAdmissionPolicies().Delete(context.Background(), e.Namespace, metav1.DeleteOptions{})
	})
	e.Until("the policy is in force", func() bool { return e.Refuses(e.Context(), e.Namespace) })
}
