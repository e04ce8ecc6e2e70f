// Package crossplane runs unmodified Crossplane inside a test, beside the API server of the
// test's cluster. Packages come from a registry in the process of the test; what they run is
// run by simulated Nodes.
package crossplane

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// Namespace is that of Crossplane.
const Namespace = "crossplane-system"

const module = "github.com/crossplane/crossplane/v2"

// secrets are the names of the Secrets with the certificates, by the variables that say so.
var secrets = map[string]string{
	"TLS_CA_SECRET_NAME": "crossplane-root-ca", "TLS_CLIENT_SECRET_NAME": "crossplane-tls-client", "TLS_SERVER_SECRET_NAME": "crossplane-tls-server",
}

// Running is Crossplane as a process.
type Running struct {
	t       testing.TB
	command func() *exec.Cmd
	process *harness.Program
	logs    []string
}

// Start runs Crossplane in a cluster until the test ends, and returns once packages can be
// installed.
func Start(t testing.TB, cluster *testcluster.Cluster) *Running {
	t.Helper()
	binary, err := testcluster.Crossplane()
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(cluster.Config())
	require.NoError(t, err)
	create(t, client, "namespaces", "", `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "`+Namespace+`"}}`)
	create(t, client, "serviceaccounts", Namespace, `{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "crossplane"}}`)
	crds, err := Definitions()
	require.NoError(t, err)
	environment := append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "CRDS_PATH="+crds)
	for variable, name := range secrets {
		environment = append(environment, variable+"="+name)
	}
	initialize(t, binary, environment)
	dir := t.TempDir()
	certificates(t, client, filepath.Join(dir, "tls"))
	cache := mkdir(t, dir, "xpkg")
	r := &Running{t: t, command: func() *exec.Cmd {
		cmd := exec.Command(binary, "core", "start", "--enable-webhooks=false", "--xpkg-cache-dir="+cache,
			"--tls-client-certs-dir="+filepath.Join(dir, "tls"), "--metrics-port="+port(t), "--health-probe-port="+port(t))
		cmd.Env = environment
		return cmd
	}}
	r.process = harness.RunProgram(t, r.command())
	t.Cleanup(func() {
		r.kill()
		if t.Failed() {
			t.Logf("Crossplane has logged:\n%s", strings.Join(r.logs, "\nand, started again:\n"))
		}
	})
	return r
}

// Restart kills the process, and starts another one.
func (r *Running) Restart() {
	r.t.Helper()
	r.kill()
	r.process = harness.RunProgram(r.t, r.command())
}

func (r *Running) kill() {
	r.process.Signal(syscall.SIGKILL)
	<-r.process.Ended()
	r.logs = append(r.logs, r.process.Log())
}

// Definitions is the directory of Crossplane's own CustomResourceDefinitions.
func Definitions() (string, error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir = filepath.Join(harness.Root(), "hack", "crossplane")
	list.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find the sources of Crossplane: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "cluster", "crds"), nil
}

// initialize sets up what Crossplane needs. Its first run may find that what it has made
// itself is not served yet.
func initialize(t testing.TB, binary string, environment []string) {
	t.Helper()
	var said []byte
	var err error
	for range 5 {
		cmd := exec.CommandContext(t.Context(), binary, "core", "init", "--enable-webhooks=false")
		cmd.Env = environment
		if said, err = cmd.CombinedOutput(); err == nil {
			return
		}
	}
	require.NoError(t, err, "initialize Crossplane:\n%s", said)
}

// certificates writes those of the client into files.
func certificates(t testing.TB, client dynamic.Interface, dir string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	secret, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(Namespace).
		Get(t.Context(), secrets["TLS_CLIENT_SECRET_NAME"], metav1.GetOptions{})
	require.NoError(t, err)
	data, _, err := unstructured.NestedStringMap(secret.Object, "data")
	require.NoError(t, err)
	for name, encoded := range data {
		text, err := base64.StdEncoding.DecodeString(encoded)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
}

func create(t testing.TB, client dynamic.Interface, resource, namespace, text string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(text)))
	_, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace).Create(t.Context(), u, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}

func mkdir(t testing.TB, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(path, 0o700))
	return path
}

// port is one that nobody listens on.
func port(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, p, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return p
}

// Stream is a package as YAML: its meta, and CustomResourceDefinitions for the plurals of a
// group.
func Stream(kind, name string, dependencies []string, objects ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: meta.pkg.crossplane.io/v1\nkind: %s\nmetadata: {name: %s}\nspec:\n  dependsOn: [%s]\n", kind, name, strings.Join(dependencies, ", "))
	for _, o := range objects {
		b.WriteString("---\n" + strings.TrimSpace(o) + "\n")
	}
	return b.String()
}

// Needs is a dependency on a provider.
func Needs(source, ranges string) string {
	return fmt.Sprintf("{provider: %q, version: %q}", source, ranges)
}

// Definition is that of a cluster-scoped kind with a schema of its spec.
func Definition(kind, spec string) string {
	plural := strings.ToLower(kind) + "s"
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.acme.io}
spec:
  group: acme.io
  scope: Cluster
  names: {kind: %s, plural: %s, singular: %s, listKind: %sList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: %s
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`, plural, kind, plural, strings.ToLower(kind), kind, spec)
}

// Wait is how long Crossplane may take in a test.
const Wait = time.Minute
