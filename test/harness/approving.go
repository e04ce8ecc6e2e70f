package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
	authzv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// approvers may approve the plans of Transactions, in a namespace.
const approvers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: approver}
rules:
- {apiGroups: [approve.janus.io], resources: [transactions], verbs: [approve]}
- {apiGroups: [backup.janus.io], resources: [transactions], verbs: [get, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: approver}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: approver}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: USER}]
`

// guard binds the policy about approvals to a namespace.
const guard = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: approvals-NAMESPACE}
spec:
  policyName: POLICY
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {LABEL: NAMESPACE}}}
`

// Approver is the user who may approve in a namespace once approvals are guarded there.
func Approver(namespace string) string { return "approver-of-" + namespace }

// GuardApprovals puts the policy that is shipped in force in a namespace, and gives its
// Approver the right to approve there.
func (c *Client) GuardApprovals(ctx context.Context, namespace string) error {
	shipped, err := ReadSource(filepath.Join(Root(), "deploy", "policies", "transaction-approvals.yaml"))
	if err != nil {
		return err
	}
	policy, _, _ := strings.Cut(string(shipped), "\n---\n")
	bound := strings.NewReplacer("NAMESPACE", namespace, "POLICY", api.ApprovalPolicy, "LABEL", corev1.LabelMetadataName).Replace(guard)
	if err := c.ApplyYAML(ctx, namespace, policy+"\n---\n"+bound+"---\n"+strings.ReplaceAll(approvers, "USER", Approver(namespace))); err != nil {
		return err
	}
	return c.AwaitRight(ctx, Approver(namespace), authzv1.ResourceAttributes{Namespace: namespace, Verb: "approve", Group: api.ApproveGroup, Resource: "transactions"})
}

// ApprovalsGuarded reports whether the policy is in force in a namespace. It leaves nothing
// there.
func (c *Client) ApprovalsGuarded(ctx context.Context, namespace string) bool {
	txn, err := Decode(`{apiVersion: backup.janus.io/v1alpha1, kind: Transaction, metadata: {name: approved-by-nobody, annotations: {` +
		api.ApprovedPlanAnnotation + `: none}}, spec: {serviceAccountName: none, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: none}, type: Delete}]}}`)
	if err != nil {
		return false
	}
	_, err = c.Dynamic.Resource(api.Resource).Namespace(namespace).Create(ctx, txn[0], metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return errclass.PolicyOf(err) == api.ApprovalPolicy
}

// GuardApprovals puts the policy in force in the namespace of the test, and returns when it is.
func (e *Env) GuardApprovals() {
	e.t.Helper()
	require.NoError(e.t, e.Client.GuardApprovals(e.Context(), e.Namespace))
	admission := e.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	e.t.Cleanup(func() { _ = admission.Delete(context.Background(), "approvals-"+e.Namespace, metav1.DeleteOptions{}) })
	e.Until("approvals are guarded", func() bool { return e.ApprovalsGuarded(e.Context(), e.Namespace) })
}

// ApproveAs writes, as a user, that by approves a plan of a Transaction.
func (c *Client) ApproveAs(ctx context.Context, user string, txn types.NamespacedName, digest, by string) error {
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		api.ApprovedPlanAnnotation: digest, api.ApprovedByAnnotation: by,
	}}})
	if err != nil {
		return err
	}
	_, err = client.Resource(api.Resource).Namespace(txn.Namespace).Patch(ctx, txn.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "approver"})
	return err
}

// Approve approves the plan that stands, as the Approver of the namespace.
func (e *Env) Approve(t *api.Transaction) {
	e.t.Helper()
	require.NotNil(e.t, t.Status.Approval, "no plan stands: %s", Describe(t))
	user := Approver(e.Namespace)
	require.NoError(e.t, e.ApproveAs(e.Context(), user, types.NamespacedName{Namespace: t.Namespace, Name: t.Name}, t.Status.Approval.Digest, user))
}

// Standing waits until the plan of a Transaction with that number waits for approval.
func (e *Env) Standing(name string, number int64) *api.Transaction {
	e.t.Helper()
	return e.Await(name, fmt.Sprintf("its plan %d stands", number), func(t *api.Transaction) bool {
		return t.Status.Approval != nil && t.Status.Approval.Plans == number && t.Status.Approval.Digest != "" && t.Status.Approval.ApprovalTime == nil
	})
}
