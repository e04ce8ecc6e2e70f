package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

func TestJanusdCreatesItsOwnNamespaceWhereItMay(t *testing.T) {
	own, err := kubernetes.NewForConfig(testcluster.Shared(t).Config())
	require.NoError(t, err)
	c := &clients{own: own}

	created, err := c.ownNamespace(t.Context(), "janus-of-its-own")
	require.NoError(t, err)
	assert.True(t, created)

	created, err = c.ownNamespace(t.Context(), "janus-of-its-own")
	require.NoError(t, err)
	assert.False(t, created, "the second janusd finds it")
}

// As where it may read Namespaces and make none.
func TestJanusdSaysThatItsNamespaceIsMissingWhereItMayNotCreateIt(t *testing.T) {
	config := testcluster.Shared(t).Config()
	admin, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	reader, err := admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "namespace-reader-"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: reader.Name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	config.Impersonate = rest.ImpersonationConfig{UserName: reader.Name}
	own, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)

	require.NoError(t, harness.Poll(t.Context(), func(ctx context.Context) (bool, error) {
		_, err := own.CoreV1().Namespaces().Get(ctx, "nowhere", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	}), "the API server takes a moment to know of the right")

	_, err = (&clients{own: own}).ownNamespace(t.Context(), "nowhere")

	require.EqualError(t, err, "namespace nowhere, in which janusd keeps the locks of cluster-scoped targets, does not exist, "+
		"and janusd may not create it: create it or name another with --namespace")
}

// As a deployed one, which may read its own namespace alone.
func TestJanusdNamesTheFlagWhereItMayNotReadTheNamespace(t *testing.T) {
	config := testcluster.Shared(t).Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "somebody-without-rights"}
	own, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)

	_, err = (&clients{own: own}).ownNamespace(t.Context(), "elsewhere")

	require.ErrorContains(t, err, "janusd may not read namespace elsewhere, in which it would keep the locks of cluster-scoped targets: "+
		"name the one that janusd is installed in with --namespace: ")
	assert.True(t, apierrors.IsForbidden(err))
}
