package deploy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
)

func target(apiVersion, kind, namespace, name string) map[string]any {
	out := map[string]any{"apiVersion": apiVersion, "kind": kind, "name": name}
	if namespace != "" {
		out["namespace"] = namespace
	}
	return out
}

// TestTransactionsDoNotTargetTheirOwnMachinery creates each as an administrator, who may
// do all of it without a Transaction.
func TestTransactionsDoNotTargetTheirOwnMachinery(t *testing.T) {
	s := newScene(t)
	const (
		admission = "admissionregistration.k8s.io/v1"
		rbac      = "rbac.authorization.k8s.io/v1"
		ofJanus   = "it is part of the installation of Janus"
		aRecord   = "that is the name of a lock, revision or before-image of Janus"
	)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for _, c := range []struct {
		target map[string]any
		why    string
	}{
		{target("backup.janus.io/v1alpha1", "Transaction", "", "other"), "objects of backup.janus.io are not changed by Transactions"},
		{target("backup.janus.io/v2", "Transaction", "elsewhere", "other"), "objects of backup.janus.io are not changed by Transactions"},
		{target("coordination.k8s.io/v1", "Lease", "", "janus-lock-shop-configmap-config-if5rqo2nnz"), aRecord},
		{target("apps/v1", "ControllerRevision", "", "janus-revision-3"), aRecord},
		{target("v1", "ConfigMap", "", "subject-rollback"), aRecord},
		{target("v1", "Secret", s.Namespace, "subject-rollback"), aRecord},
		{target("v1", "ConfigMap", ownNamespace, "anything"), ofJanus},
		{target("apps/v1", "Deployment", ownNamespace, "janusd"), ofJanus},
		{target("v1", "Namespace", "", ownNamespace), ofJanus},
		{target("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "transactions.backup.janus.io"), ofJanus},
		{target(admission, "ValidatingAdmissionPolicy", "", "transaction-identity.backup.janus.io"), ofJanus},
		{target(admission, "ValidatingAdmissionPolicyBinding", "", "transaction-identity.backup.janus.io"), ofJanus},
		{target(rbac, "ClusterRole", "", "janusd"), ofJanus},
		{target(rbac, "ClusterRoleBinding", "", "janusd"), ofJanus},
		{target(rbac, "Role", "", "janusd"), ofJanus},
		{target(rbac, "RoleBinding", "elsewhere", "janusd"), ofJanus},
		{target(rbac, "ClusterRole", "", "janus-editor"), ofJanus},
		{target(rbac, "ClusterRole", "", "janus-approver"), ofJanus},
		{target(rbac, "ClusterRoleBinding", "", "janusd-metrics-janus-system"), ofJanus},
		{target(rbac, "ClusterRole", "", "janusd-enforced-locks-janus-system"), ofJanus},
		{target(rbac, "ClusterRole", "", "janus-ui-viewer"), ofJanus},
		{target("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "packagetransactions.pkg.janus.io"), ofJanus},
		{target(admission, "ValidatingAdmissionPolicy", "", "packagetransaction-identity.pkg.janus.io"), ofJanus},
		{target(admission, "ValidatingAdmissionPolicyBinding", "", "packagetransaction-identity.pkg.janus.io"), ofJanus},
		{target(rbac, "ClusterRole", "", "janus-package-editor"), ofJanus},
		{target(rbac, "ClusterRoleBinding", "", "janus-package-viewer"), ofJanus},
		{target(rbac, "ClusterRole", "", "janusd-packages-janus-system"), ofJanus},
		{target("backup.janus.io/v1alpha1", "LockTable", "", "janus-locks"), "objects of backup.janus.io are not changed by Transactions"},
	} {
		harmless := target("v1", "ConfigMap", "", "config")
		err := s.create(api.Resource, targeting("subject", harmless, c.target), dryRun)
		s.refused(err, "targets", fmt.Sprintf("spec.changes may not target %v %v: ", c.target["kind"], c.target["name"]), c.why)
	}
	for _, allowed := range []map[string]any{
		target("v1", "ConfigMap", "", "other-rollback"),
		target("v1", "ConfigMap", "elsewhere", "subject-rollback"),
		target("coordination.k8s.io/v1", "Lease", "", "my-controller"),
		target("apps/v1", "ControllerRevision", "", "web-6b9f"),
		target("v1", "Namespace", "", "shop"),
		target("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.example.com"),
		target(rbac, "ClusterRole", "", "deployer"),
		target(rbac, "ClusterRole", "", "janusdeployer"),
		target(rbac, "Role", "", "deployer"),
		target(rbac, "RoleBinding", "", "janusd-metrics-reader"),
	} {
		require.NoError(t, s.create(api.Resource, targeting("subject", allowed), dryRun), "%v", allowed)
	}
}

// TestTheLargestTransactionIsJudged shows that the policies stay within the cost that the
// API server allows an expression.
func TestTheLargestTransactionIsJudged(t *testing.T) {
	s := newScene(t)
	var targets []map[string]any
	for i := range 999 {
		targets = append(targets, target("v1", "ConfigMap", "", fmt.Sprintf("a-name-that-is-rather-long-but-not-unheard-of-%d", i)))
	}
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	require.NoError(t, s.create(api.Resource, targeting("large", targets...), dryRun))
	err := s.create(api.Resource, targeting("large", append(targets, target("v1", "Namespace", "", ownNamespace))...), dryRun)
	s.refused(err, "targets", "spec.changes may not target Namespace janus-system")
}
