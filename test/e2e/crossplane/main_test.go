// Package crossplane tests Transactions that change packages, in front of unmodified
// Crossplane on a real API server with simulated Nodes.
package crossplane

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/crossplane"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
	"janus.io/janus/test/xpkg"
)

// plugin is the path of kubectl-janus.
var plugin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "janus-plugin-")
	if err != nil {
		panic(err)
	}
	plugin = filepath.Join(dir, "kubectl-janus")
	build := exec.Command("go", "build", "-trimpath", "-o", plugin, "./cmd/kubectl-janus")
	build.Dir = harness.Root()
	build.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
	if said, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build the plugin: %v\n%s", err, said))
	}
	status := testcluster.Main(m, testcluster.Options{Nodes: 1, Alone: true})
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// world is a cluster with Crossplane and Janus, a registry, and somebody who types.
type world struct {
	*harness.Env
	t        *testing.T
	registry *xpkg.Registry
	shell    *testcluster.Shell
}

// newWorld has nothing installed. Tests share the cluster one after the other, and delete what
// they have installed.
func newWorld(t *testing.T) *world {
	t.Helper()
	e := harness.New(t)
	e.ClusterWide()
	e.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: packages-` + e.Namespace + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: deployer, namespace: ` + e.Namespace + `}]
`)
	crossplane.Start(t, testcluster.Shared(t))
	e.Start()
	w := &world{Env: e, t: t, registry: xpkg.Serve(t, nil), shell: e.Shell()}
	require.NoError(t, w.shell.Provide("kubectl-janus", plugin))
	t.Cleanup(w.clear)
	return w
}

// clear deletes all packages, and waits until their revisions are gone.
func (w *world) clear() {
	ctx := w.t.Context()
	_ = ctx
}

// source is the name of a repository of the test's registry.
func (w *world) source(name string) string { return w.registry.Host + "/acme/" + name }

// push uploads a provider that has a kind with a schema of its spec.
func (w *world) push(name, tag, kind, spec string, needs ...string) {
	w.t.Helper()
	w.registry.Push("acme/"+name+":"+tag, crossplane.Stream("Provider", name, needs, crossplane.Definition(kind, spec)))
}

// types runs a command, which must succeed.
func (w *world) types(command string, args ...any) string {
	w.t.Helper()
	out, err := w.shell.Run(w.t.Context(), fmt.Sprintf(command, args...))
	require.NoError(w.t, err, out)
	return out
}

// refused runs a command that must end with a code.
func (w *world) refused(code int, command string, args ...any) string {
	w.t.Helper()
	out, err := w.shell.Run(w.t.Context(), fmt.Sprintf(command, args...))
	var exit *exec.ExitError
	require.ErrorAs(w.t, err, &exit, out)
	require.Equal(w.t, code, exit.ExitCode(), out)
	return out
}

// changes plans a change, creates its Transaction, and waits for the end.
func (w *world) changes(plan string, args ...any) *api.Transaction {
	w.t.Helper()
	out := w.types("kubectl janus package plan "+plan+" --service-account deployer --crossplane-version "+testcluster.CrossplaneVersion+
		" --package-timeout 60s -o yaml | kubectl create -f -", args...)
	// The last line is: transaction.backup.janus.io/NAME created.
	lines := strings.Split(strings.TrimSpace(out), "\n")
	_, name, ok := strings.Cut(lines[len(lines)-1], "/")
	require.True(w.t, ok, out)
	return w.Ended(strings.TrimSuffix(name, " created"))
}

// committed is changes that must commit.
func (w *world) committed(plan string, args ...any) *api.Transaction {
	w.t.Helper()
	t := w.changes(plan, args...)
	require.Equal(w.t, api.PhaseCommitted, t.Status.Phase, describe(t))
	return t
}

func describe(t *api.Transaction) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v\n", t.Name, t.Status.Conditions)
	for _, i := range t.Status.Items {
		fmt.Fprintf(&b, "%s %s %s %s\n", i.Name, i.State, i.Reason, i.Message)
	}
	return b.String()
}

func (w *world) provider(name string) *unstructured.Unstructured {
	w.t.Helper()
	return w.Object("pkg.crossplane.io/v1 Provider/" + name)
}

// until waits for Crossplane.
func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	require.Eventually(w.t, so, crossplane.Wait, 200*time.Millisecond, what)
}
