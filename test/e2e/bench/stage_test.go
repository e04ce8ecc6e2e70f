package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// account is the ServiceAccount that Transactions name.
const account = "deployer"

// stage is where everybody performs: a cluster, and clients without a limit of their own.
type stage struct {
	options
	cluster *testcluster.Cluster
	client  *harness.Client
	janusd  *janusd
	dir     string
	program string // janusd
	made    *int   // namespaces
	// kubeconfig is what Helm and Flux are given.
	kubeconfig string
}

func newStage(t *testing.T, o options) *stage {
	t.Helper()
	s := &stage{options: o, made: new(int), cluster: testcluster.Shared(t), dir: t.TempDir(), program: *program}
	if s.program == "" {
		s.program = harness.BuildJanusd(t)
	}
	config := s.cluster.Config()
	config.QPS, config.UserAgent = -1, "bench"
	var err error
	s.client, err = harness.NewClient(config)
	require.NoError(t, err)
	s.kubeconfig = s.file("peers")
	require.NoError(t, writeKubeconfig(s.kubeconfig, s.cluster.Config()))
	require.NoError(t, s.client.Install(t.Context()))
	require.NoError(t, s.client.ApplyRefusal(t.Context(), "bench", "bench", "yes"))
	s.janusd, err = s.startJanusd(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() {
		if s.janusd != nil {
			s.janusd.stop()
		}
	})
	return s
}

// namespace makes a namespace with n ConfigMaps c-0, c-1 and so on, and a ServiceAccount
// that may change them.
func (s *stage) namespace(ctx context.Context, n int) (string, error) {
	*s.made++
	name := fmt.Sprintf("bench-%d", *s.made)
	if _, err := s.client.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"bench": "yes"}}}, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	if _, err := s.client.Kube.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	if _, err := s.client.Kube.RbacV1().RoleBindings(name).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: name}},
	}, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	if err := s.sideBySide(ctx, name, 0, n, "before", atOnceClients); err != nil {
		return "", err
	}
	return name, s.awaitRights(ctx, name)
}

// awaitRights waits until the API server knows what the ServiceAccount may do, and what is
// refused.
func (s *stage) awaitRights(ctx context.Context, namespace string) error {
	config := s.cluster.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + account}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ConfigMaps(namespace).Patch(ctx, "c-0", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
		return err == nil && s.client.Refuses(ctx, namespace), nil
	})
}

func (s *stage) file(name string) string { return filepath.Join(s.dir, name) }
