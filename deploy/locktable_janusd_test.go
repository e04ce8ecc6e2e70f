package deploy_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// TestJanusdEnforcesLocks runs the program, with the token of its ServiceAccount. An entry
// of a Transaction that is gone is removed when it starts.
func TestJanusdEnforcesLocks(t *testing.T) {
	s := enforcedScene(t)
	s.enforce()
	s.enter(map[string]string{"configmaps/stale": s.Namespace + "/gone/2f0c8bd2-0000-4000-8000-000000000000"})
	program := harness.BuildJanusd(t)
	said := &bytes.Buffer{}
	run := s.start(program, "janusd", said)
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	s.Apply(shop)
	s.Submit("release", waiting)
	s.midway("release")
	require.Len(t, s.entries(), 3, "the stale entry is gone")
	for what, err := range s.writes(s.in.dynamic) {
		require.ErrorContains(t, err, enforcedPolicy, "%s", what)
	}
	s.open()
	txn := s.Ended("release")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	require.Empty(t, s.entries())
	require.NoError(t, run.Process.Signal(os.Interrupt))
	require.NoError(t, <-ended, "%s", said)

	// One that has the rights of deploy alone says what it lacks.
	said.Reset()
	s.account("without")
	require.Error(t, s.start(program, "without", said).Wait())
	assert.Contains(t, said.String(), "janusd: --enforce-locks: janusd may not list LockTables: install deploy/enforced: ")
}

// start runs janusd as a ServiceAccount of its namespace.
func (s *scene) start(program, account string, said *bytes.Buffer) *exec.Cmd {
	s.t.Helper()
	run := exec.CommandContext(s.t.Context(), program, "--enforce-locks", "--kubeconfig="+s.kubeconfig(account),
		"--watch-namespaces="+s.Namespace, "--metrics-bind-address=0", "--health-probe-bind-address=0")
	run.Stderr = said
	require.NoError(s.t, run.Start())
	return run
}

// account makes a ServiceAccount with the rights that janusd has without the component.
func (s *scene) account(name string) {
	s.t.Helper()
	_, err := s.in.client.CoreV1().ServiceAccounts(ownNamespace).
		Create(s.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	_, err = s.in.client.RbacV1().ClusterRoleBindings().Create(s.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "janusd"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: ownNamespace}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	for _, role := range []string{"janusd-leader-election", "janusd-own-namespace"} {
		_, err = s.in.client.RbacV1().RoleBindings(ownNamespace).Create(s.t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: ownNamespace}},
		}, metav1.CreateOptions{})
		require.NoError(s.t, err)
	}
	who := authorizationv1.SubjectAccessReviewSpec{User: "system:serviceaccount:" + ownNamespace + ":" + name}
	require.Eventually(s.t, func() bool { return allowed(s.t, s.in.client, who, own[0], "default") }, settle, poll)
	require.NoError(s.t, s.AwaitRight(s.t.Context(), who.User, authorizationv1.ResourceAttributes{Namespace: ownNamespace, Verb: "get", Resource: "namespaces", Name: ownNamespace}))
}

// kubeconfig writes one with a token of a ServiceAccount of Janus's namespace.
func (s *scene) kubeconfig(account string) string {
	s.t.Helper()
	token, err := s.in.client.CoreV1().ServiceAccounts(ownNamespace).
		CreateToken(s.t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: s.in.config.Host, CertificateAuthorityData: s.in.config.CAData, CertificateAuthority: s.in.config.CAFile}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	require.NoError(s.t, clientcmd.WriteToFile(*config, path))
	return path
}
