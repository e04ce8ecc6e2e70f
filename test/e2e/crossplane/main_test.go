// Package crossplane tests Transactions that change packages, in front of unmodified
// Crossplane on a real API server with simulated Nodes.
package crossplane

import (
	"context"
	"errors"
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
	crds, err := definitions(dir)
	if err != nil {
		panic(err)
	}
	status := testcluster.Main(m, testcluster.Options{Nodes: 1, Alone: true, CRDs: crds})
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// definitions puts those of Janus and of Crossplane into one directory. They are there before
// the garbage collector starts: it looks for new kinds every half minute, and until then it
// deletes what it was told to orphan.
func definitions(dir string) (string, error) {
	out := filepath.Join(dir, "crds")
	theirs, err := crossplane.Definitions()
	if err != nil {
		return "", err
	}
	for _, from := range []string{theirs, filepath.Join(harness.Root(), "deploy", "crd"), filepath.Join(harness.Root(), "deploy", "packages", "objects")} {
		files, err := filepath.Glob(filepath.Join(from, "*.yaml"))
		if err != nil {
			return "", err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err == nil && strings.Contains(string(text), "kind: CustomResourceDefinition") {
				//nolint:gosec // G703: the files are ours, and those of a module.
				err = errors.Join(os.MkdirAll(out, 0o700), os.WriteFile(filepath.Join(out, filepath.Base(file)), text, 0o600))
			}
			if err != nil {
				return "", err
			}
		}
	}
	return out, nil
}

// world is a cluster with Crossplane and Janus, a registry, and a shell.
type world struct {
	*harness.Env
	t        *testing.T
	registry *xpkg.Registry
	shell    *testcluster.Shell
	// crossplane is the process.
	crossplane *crossplane.Running
}

// newWorld has nothing installed. Tests share the cluster one after the other, and delete what
// they have installed.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := newWorldWithoutJanus(t)
	policy := harness.FastPolicy
	policy.RevisionHistoryLimit = 10
	w.Start(harness.WithPolicy(policy))
	return w
}

func newWorldWithoutJanus(t *testing.T) *world {
	t.Helper()
	e := harness.New(t)
	running := crossplane.Start(t, testcluster.Shared(t))
	// The rights that the example grants are all that the Transactions have.
	rights, err := os.ReadFile(filepath.Join(harness.Root(), "examples", "packages", "rbac.yaml"))
	require.NoError(t, err)
	e.Apply(strings.ReplaceAll(string(rights), "namespace: shop", "namespace: "+e.Namespace))
	w := &world{Env: e, t: t, registry: xpkg.Serve(t, nil), shell: e.Shell(), crossplane: running}
	require.NoError(t, w.shell.Provide("kubectl-janus", plugin))
	t.Cleanup(w.clear)
	return w
}

// clear deletes all packages without a plan, until nothing of them is left: Crossplane installs what
// another package needs once more, as long as that one is in its Lock.
func (w *world) clear() {
	w.t.Helper()
	const all, definitions = "providers,providerrevisions,configurations,configurationrevisions,functions,functionrevisions", "$(kubectl get crd -o name | grep acme.io)"
	ctx, cancel := context.WithTimeout(context.Background(), 3*crossplane.Wait)
	defer cancel()
	out, err := w.shell.Run(ctx, `until [ -z "$(kubectl get `+all+` -o name)`+definitions+`" ]; do kubectl delete `+all+` --all --wait=false || true; sleep 1; done; `+
		"kubectl delete configmap janus-packages -n "+crossplane.Namespace+" --ignore-not-found")
	if err != nil {
		left, _ := w.shell.Run(context.Background(), "kubectl get "+all+" -o yaml; kubectl get "+definitions+" -o yaml")
		out += "left:\n" + left
	}
	require.NoError(w.t, err, out)
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
	out := w.types("kubectl janus package plan "+plan+" --service-account installer --crossplane-version "+testcluster.CrossplaneVersion+
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

// created creates a Transaction that was printed, and waits for its end.
func (w *world) created(manifest string) *api.Transaction {
	w.t.Helper()
	return w.Ended(w.creates(manifest))
}

// creates creates a Transaction that was printed, and returns its name.
func (w *world) creates(manifest string) string {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "transaction.yaml")
	require.NoError(w.t, os.WriteFile(file, []byte(manifest), 0o600))
	out := w.types("kubectl create -f %s", file)
	_, name, ok := strings.Cut(strings.TrimSpace(out), "/")
	require.True(w.t, ok, out)
	return strings.TrimSuffix(name, " created")
}

// healthy reports whether a provider says so of its current revision.
func (w *world) healthy(name string) bool {
	w.t.Helper()
	out, err := w.shell.Run(w.t.Context(), "kubectl janus package list | grep -w "+name)
	return err == nil && strings.Contains(out, "True")
}
