package harness

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// Identity is the user that Janus is in tests, as in an installation.
const Identity = "system:serviceaccount:" + SystemNamespace + ":janusd"

// tokenSeconds outlasts the longest run of tests, the enumeration of faults.
const tokenSeconds = 7 * 24 * 3600

// installRights gives janusd's ServiceAccount the rights that deploy/rbac gives it in a
// cluster-wide installation, and returns when the API server knows of them.
func (c *Client) installRights(ctx context.Context) error {
	stream, err := manifests(filepath.Join(Root(), "deploy", "rbac"))
	if err != nil {
		return err
	}
	if err := c.ApplyYAML(ctx, "", stream); err != nil {
		return err
	}
	// One right of each kind of binding: the API server hears of them separately.
	for _, known := range []authzv1.ResourceAttributes{
		{Namespace: "default", Verb: "create", Resource: "configmaps"},
		{Namespace: SystemNamespace, Verb: "list", Group: "coordination.k8s.io", Resource: "leases"},
	} {
		if err := c.AwaitRight(ctx, Identity, known); err != nil {
			return err
		}
	}
	return nil
}

// OwnRights gives janusd in the namespace of the test what it has in its own, for tests that
// run it with --namespace.
func (e *Env) OwnRights() {
	e.t.Helper()
	stream, err := manifests(filepath.Join(Root(), "deploy", "rbac", "base"))
	require.NoError(e.t, err)
	objects, err := Decode(stream)
	require.NoError(e.t, err)
	for _, obj := range objects {
		if kind := obj.GetKind(); kind != "Role" && kind != "RoleBinding" {
			continue
		}
		obj.SetNamespace(e.Namespace)
		client, err := e.For(obj.GroupVersionKind(), e.Namespace)
		require.NoError(e.t, err)
		_, err = client.Apply(e.t.Context(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: Manager})
		require.NoError(e.t, err)
	}
	require.NoError(e.t, e.AwaitRight(e.t.Context(), Identity, authzv1.ResourceAttributes{
		Namespace: e.Namespace, Verb: "list", Group: "coordination.k8s.io", Resource: "leases",
	}))
}

// NamespaceRights lets janusd list and watch namespaces, as deploy/namespaces does for those who
// select them by their labels.
func (e *Env) NamespaceRights() {
	e.t.Helper()
	stream, err := manifests(filepath.Join(Root(), "deploy", "namespaces", "objects"))
	require.NoError(e.t, err)
	require.NoError(e.t, e.ApplyYAML(e.t.Context(), "", stream))
	require.NoError(e.t, e.AwaitRight(e.t.Context(), Identity, authzv1.ResourceAttributes{Verb: "watch", Resource: "namespaces"}))
}

// AwaitRight waits until the API server knows of a right.
func (c *Client) AwaitRight(ctx context.Context, user string, right authzv1.ResourceAttributes) error {
	review := &authzv1.SubjectAccessReview{Spec: authzv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &right}}
	err := Poll(ctx, func(ctx context.Context) (bool, error) {
		answer, err := c.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	})
	if err != nil {
		return fmt.Errorf("%s may not %s %s: %w", user, right.Verb, right.Resource, err)
	}
	return nil
}

// manifests joins the manifests that a directory of kustomizations names.
func manifests(dir string) (string, error) {
	text, err := ReadSource(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		return "", err
	}
	kustomization, err := Decode(string(text))
	if err != nil || len(kustomization) != 1 {
		return "", fmt.Errorf("%s has %d kustomizations: %w", dir, len(kustomization), err)
	}
	resources, _, err := unstructured.NestedStringSlice(kustomization[0].Object, "resources")
	if err != nil {
		return "", fmt.Errorf("read the resources of %s: %w", dir, err)
	}
	var out string
	for _, name := range resources {
		path := filepath.Join(dir, name)
		part := ""
		if filepath.Ext(name) == "" {
			part, err = manifests(path)
		} else {
			text, err = ReadSource(path)
			part = string(text)
		}
		if err != nil {
			return "", err
		}
		out += "\n---\n" + part
	}
	return out, nil
}

// AsJanusd returns the configuration that janusd itself would connect with: a token of its
// ServiceAccount, and nothing of the administrator's. What is run with it has the rights
// that are shipped, and no other.
func (c *Client) AsJanusd(ctx context.Context) (*rest.Config, error) {
	token, err := c.Kube.CoreV1().ServiceAccounts(SystemNamespace).CreateToken(ctx, "janusd",
		&authnv1.TokenRequest{Spec: authnv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenSeconds)}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("get a token of janusd's ServiceAccount: %w", err)
	}
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken, config.QPS = token.Status.Token, -1
	return config, nil
}

// JanusdKubeconfig writes what AsJanusd returns into a kubeconfig.
func (c *Client) JanusdKubeconfig(ctx context.Context, path string) error {
	config, err := c.AsJanusd(ctx)
	if err != nil {
		return err
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return fmt.Errorf("read the certificate of the API server: %w", err)
	}
	return clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "janusd",
		Clusters:       map[string]*clientcmdapi.Cluster{"janusd": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		Contexts:       map[string]*clientcmdapi.Context{"janusd": {Cluster: "janusd", AuthInfo: "janusd"}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"janusd": {Token: config.BearerToken}},
	}, path)
}

// ClusterWide lets the ServiceAccount deployer do anything in the whole cluster, until the
// test ends.
func (e *Env) ClusterWide() {
	e.t.Helper()
	e.Apply(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: deployer, namespace: %[1]s}]
`, e.Namespace))
	e.t.Cleanup(func() {
		// The context of the test has ended by now.
		assert.NoError(e.t, e.Kube.RbacV1().ClusterRoleBindings().Delete(context.Background(), e.Namespace, metav1.DeleteOptions{}))
	})
}
