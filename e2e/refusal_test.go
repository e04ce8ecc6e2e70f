package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/internal/janustest"
)

// refusedAtCommit are two changes to end a list with. Both pass their dry run; the
// second is refused when it is made, if applyRefusal was called.
const refusedAtCommit = `
  - {target: {apiVersion: v1, kind: Service, name: a}, type: Create, content: {spec: {ports: [{port: 80}]}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: refused-b}, type: Create, content: {data: {a: b}}}
`

// refusal refuses, in one namespace, to make ConfigMaps named refused-…, unless it
// is a dry run.
const refusal = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAMESPACE}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  matchConditions: [{name: refused, expression: "request.name.startsWith('refused-')"}]
  validations: [{expression: "has(request.dryRun) && request.dryRun", message: it is refused, reason: Forbidden}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAMESPACE}
spec:
  policyName: NAMESPACE
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}}
`

// applyRefusal makes the policy and waits until it is in force.
func applyRefusal(t *testing.T, e *janustest.Env) {
	t.Helper()
	e.Apply(strings.ReplaceAll(refusal, "NAMESPACE", e.Namespace))
	t.Cleanup(func() {
		admission := e.Kube.AdmissionregistrationV1()
		_ = admission.ValidatingAdmissionPolicyBindings().Delete(context.Background(), e.Namespace, metav1.DeleteOptions{})
		_ = admission.ValidatingAdmissionPolicies().Delete(context.Background(), e.Namespace, metav1.DeleteOptions{})
	})
	e.Until("the policy is in force", func() bool {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "refused-probe"}}
		_, err := e.Kube.CoreV1().ConfigMaps(e.Namespace).Create(t.Context(), probe, metav1.CreateOptions{})
		return apierrors.IsForbidden(err)
	})
	err := e.Kube.CoreV1().ConfigMaps(e.Namespace).Delete(t.Context(), "refused-probe", metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
}
