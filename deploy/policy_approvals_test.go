package deploy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
)

// TestApprovalsAreOnesOwn tries who may write that a plan is approved, and of which plan.
func TestApprovalsAreOnesOwn(t *testing.T) {
	s := newScene(t)
	txn := transaction("default")
	txn.SetGenerateName("")
	txn.SetName("release")
	all := []string{metav1.DryRunAll}
	txn.SetAnnotations(map[string]string{api.ApprovedPlanAnnotation: "4711", api.ApprovedByAnnotation: "kubernetes-admin"})
	require.Eventually(t, func() bool { return s.create(api.Resource, txn, metav1.CreateOptions{DryRun: all}) != nil }, settle, 5*poll, "the policy is enforced")
	s.refused(s.create(api.Resource, txn, metav1.CreateOptions{DryRun: all}), "approvals", "may not approve a plan in the name of")
	txn.SetAnnotations(nil)
	require.NoError(t, s.create(api.Resource, txn, metav1.CreateOptions{}))
	txns := func(client dynamic.Interface) dynamic.ResourceInterface {
		return client.Resource(api.Resource).Namespace(s.Namespace)
	}
	live, err := txns(s.in.dynamic).Get(t.Context(), "release", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedField(live.Object, "4711", "status", "approval", "digest"))
	_, err = txns(s.in.as(t, janusd.User)).UpdateStatus(t.Context(), live, metav1.UpdateOptions{})
	require.NoError(t, err)

	bind(t, s.in, s.Namespace, "janus-approver", "approver")
	bind(t, s.in, s.Namespace, "admin", "owner")
	// Who has all of the group of Transactions has no right to approve by that, nor by the verb that was
	// asked for before.
	_, err = s.in.client.RbacV1().Roles(s.Namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "everything"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{api.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.in.client.RbacV1().RoleBindings(s.Namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "everything"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "everything"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "everything"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	write := func(user string, annotations map[string]any, options metav1.PatchOptions) error {
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
		require.NoError(t, err)
		_, err = txns(s.in.as(t, user)).Patch(t.Context(), "release", types.MergePatchType, body, options)
		return err
	}
	approve := func(user, plan, by string) error {
		return write(user, map[string]any{api.ApprovedPlanAnnotation: plan, api.ApprovedByAnnotation: by}, metav1.PatchOptions{DryRun: all})
	}
	require.Eventually(t, func() bool { return approve("approver", "4711", "approver") == nil }, settle, poll, "the approver may")
	require.Eventually(t, func() bool {
		return write("everything", map[string]any{"note": "w"}, metav1.PatchOptions{DryRun: all}) == nil
	}, settle, poll, "anyone who has everything may edit")
	s.refused(approve("everything", "4711", "everything"), "approvals", `user "everything" may not approve the plan`,
		"the verb approve counts on transactions.approve.janus.io, and no more on transactions/approval in backup.janus.io")
	for name, err := range map[string]error{
		"in another's name":      approve("approver", "4711", "owner"),
		"in nobody's name":       approve("approver", "4711", ""),
		"janusd, as it does":     approve(janusd.User, "none", "nobody"),
		"janusd, in its own":     approve(janusd.User, "4711", janusd.User),
		"who may edit":           approve("owner", "4711", "owner"),
		"who may edit, as other": approve("owner", "4711", "approver"),
		"another plan":           approve("approver", "4712", "approver"),
		"no plan":                approve("approver", "", "approver"),
	} {
		require.Error(t, err, name)
		s.refused(err, "approvals")
	}
	require.NoError(t, write("owner", map[string]any{"note": "x"}, metav1.PatchOptions{}), "anything else is not looked at")

	require.NoError(t, write("approver", map[string]any{api.ApprovedPlanAnnotation: "4711", api.ApprovedByAnnotation: "approver"}, metav1.PatchOptions{}))
	s.refused(write("owner", map[string]any{api.ApprovedByAnnotation: "owner"}, metav1.PatchOptions{DryRun: all}), "approvals", "may not approve the plan")
	require.NoError(t, write("owner", map[string]any{"note": "y"}, metav1.PatchOptions{}), "what is approved can be labelled")
	require.NoError(t, write(janusd.User, map[string]any{"note": "z"}, metav1.PatchOptions{}), "and held by a finalizer")
	require.NoError(t, write("owner", map[string]any{api.ApprovedPlanAnnotation: nil}, metav1.PatchOptions{}), "anyone who may write it may take the approval off")
}
