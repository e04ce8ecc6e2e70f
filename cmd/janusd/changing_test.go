package main

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// A changing scope is how a janusd is told which namespaces to watch, and how a test changes that.
type changing struct {
	flag          string
	add, takeAway func(namespace string)
}

// byLabels selects the namespaces whose label names that of the test.
func byLabels(t *testing.T, e *harness.Env) changing {
	t.Helper()
	e.NamespaceRights()
	label := func(namespace, value string) {
		patch := `{"metadata":{"labels":{"janus-watch":` + value + `}}}`
		_, err := e.Kube.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	return changing{
		flag:     "--watch-namespaces=label:janus-watch=" + e.Namespace,
		add:      func(namespace string) { label(namespace, `"`+e.Namespace+`"`) },
		takeAway: func(namespace string) { label(namespace, "null") },
	}
}

// inAFile names them. The file is whole at any time, as the kubelet has it.
func inAFile(t *testing.T, _ *harness.Env) changing {
	t.Helper()
	path := filepath.Join(t.TempDir(), "namespaces")
	names := map[string]bool{}
	write := func() {
		text := strings.Join(slices.Sorted(maps.Keys(names)), "\n")
		require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	}
	write()
	return changing{
		flag:     "--watch-namespaces=file:" + path,
		add:      func(namespace string) { names[namespace] = true; write() },
		takeAway: func(namespace string) { delete(names, namespace); write() },
	}
}

var scopes = map[string]func(*testing.T, *harness.Env) changing{"by label": byLabels, "in a file": inAFile}

// A namespace that comes is served without a restart. One that goes is left when what was begun
// there has ended, and nothing is begun there any more.
func TestNamespacesComeAndGoWithoutARestart(t *testing.T) {
	for name, of := range scopes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, other := newEnv(t), newEnv(t)
			scope := of(t, e)
			scope.add(e.Namespace)
			kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
			require.NoError(t, e.JanusdKubeconfig(t.Context(), kubeconfig))
			p := startChanging(t, kubeconfig, e.Namespace, scope.flag)
			e.Submit("deploy", changes)
			committed(t, e, "deploy")
			other.Submit("deploy", changes)
			scope.add(other.Namespace)
			committed(t, other, "deploy")
			assert.Empty(t, p.entries("a namespace is not watched any more"))

			scope.takeAway(other.Namespace)
			left := p.await("a namespace is not watched any more")
			assert.Equal(t, other.Namespace, left["namespace"])
			other.Submit("later", changes)
			e.Submit("another", changes)
			require.Equal(t, api.PhaseCommitted, e.Ended("another").Status.Phase)
			assert.Empty(t, other.Transaction("later").Finalizers)
			p.signal(syscall.SIGTERM)
			assert.Equal(t, 0, p.exit())
		})
	}
}

// janusd is killed in the middle of a Transaction, and its namespace leaves before or after that.
// The next janusd finishes what was begun, and nothing else.
func TestWhatWasBegunInANamespaceThatLeftIsFinishedAfterAKill(t *testing.T) {
	for name, of := range scopes {
		for _, first := range []string{"the namespace leaves", "janusd is killed"} {
			t.Run(name+", first "+first, func(t *testing.T) {
				t.Parallel()
				e := newEnv(t)
				scope := of(t, e)
				scope.add(e.Namespace)
				g := newGate(t, patchOf("b"))
				p := startChanging(t, g.kubeconfig, e.Namespace, scope.flag)
				e.Submit("deploy", changes)
				<-g.reached
				if first == "the namespace leaves" {
					scope.takeAway(e.Namespace)
					p.await("the namespaces whose Transactions are run have changed")
				}
				p.signal(syscall.SIGKILL)
				p.exit()
				scope.takeAway(e.Namespace)
				require.Equal(t, api.PhaseCommitting, e.Transaction("deploy").Status.Phase)
				e.Submit("later", changes)

				kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
				require.NoError(t, e.JanusdKubeconfig(t.Context(), kubeconfig))
				next := startChanging(t, kubeconfig, e.Namespace, scope.flag)
				committed(t, e, "deploy")
				next.await("a namespace is not watched any more")
				assert.Empty(t, e.Transaction("later").Finalizers, "it was not begun")
				assert.Empty(t, e.Transaction("later").Status.Phase)
			})
		}
	}
}

// So does it if the one before was killed at the very end: the finalizer goes before the last phase is on record.
func TestWhatHasLostItsFinalizerInANamespaceThatLeftIsFinishedAfterAKill(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	scope := inAFile(t, e)
	scope.add(e.Namespace)
	g := newGate(t, func(r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, "/transactions/deploy/status") {
			return false
		}
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		return err == nil && bytes.Contains(body, []byte(`"phase":"Committed"`))
	})
	p := startChanging(t, g.kubeconfig, e.Namespace, scope.flag)
	e.Submit("early", changes)
	committed(t, e, "early")
	e.Submit("deploy", changes)
	<-g.reached
	p.signal(syscall.SIGKILL)
	p.exit()
	scope.takeAway(e.Namespace)
	require.Equal(t, api.PhaseCommitting, e.Transaction("deploy").Status.Phase)
	require.Empty(t, e.Transaction("deploy").Finalizers)

	c := &clients{metadata: metadata.NewForConfigOrDie(e.Config), dynamic: e.Dynamic}
	begun, err := c.begun(t.Context(), e.Namespace)
	require.NoError(t, err)
	assert.True(t, begun, "the API server has it")
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, e.JanusdKubeconfig(t.Context(), kubeconfig))
	startChanging(t, kubeconfig, e.Namespace, scope.flag)
	committed(t, e, "deploy")
	begun, err = c.begun(t.Context(), e.Namespace)
	require.NoError(t, err)
	assert.False(t, begun, "both have ended")
}

// What is not on record is not begun: a janusd that died then would not find it.
func TestNothingIsBegunInANamespaceThatIsNotOnRecord(t *testing.T) {
	e := newEnv(t)
	scope := inAFile(t, e)
	scope.add(e.Namespace)
	g := newGate(t, func(r *http.Request) bool {
		return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/configmaps/"+namespacesRecord)
	})
	startChanging(t, g.kubeconfig, e.Namespace, scope.flag)
	e.Submit("deploy", changes)
	<-g.reached
	_, err := e.Kube.CoreV1().ConfigMaps(e.Namespace).Get(t.Context(), namespacesRecord, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	assert.Empty(t, e.Transaction("deploy").Finalizers)
	close(g.open)
	committed(t, e, "deploy")
	found, err := e.Kube.CoreV1().ConfigMaps(e.Namespace).Get(t.Context(), namespacesRecord, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Contains(t, found.Data, e.Namespace)
}

// A replica that waits to lead knows the Transactions, and says so.
func TestAReplicaContendsWhenItKnowsTheTransactions(t *testing.T) {
	e := newEnv(t)
	g := newGate(t, func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/transactions") })
	p := startWith(t, g.kubeconfig, e.Namespace, "--leader-elect", "--health-probe-bind-address=127.0.0.1:0")
	<-g.reached
	code, body := p.get("health probes", "/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, code, body)
	_, err := e.Kube.CoordinationV1().Leases(e.Namespace).Get(t.Context(), leaderLease, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "it does not contend: %v", err)
	close(g.open)
	p.await("leading")
	code, body = p.get("health probes", "/readyz")
	assert.Equal(t, http.StatusOK, code, body)
	e.Submit("deploy", changes)
	committed(t, e, "deploy")
}

// Two janusd with different selectors share a namespace, each with a Lease of its own.
func TestTwoSelectorsAreTwoGroupsOfReplicas(t *testing.T) {
	e := newEnv(t)
	for _, team := range []string{"a", "b"} {
		startJanusd(t, e, "--leader-elect", "--selector=team="+team).await("leading")
	}
	for _, team := range []string{"a", "b"} {
		e.Apply(`
apiVersion: backup.janus.io/v1alpha1
kind: Transaction
metadata: {name: of-` + team + `, labels: {team: ` + team + `}}
spec:
  serviceAccountName: deployer
  changes: [{target: {apiVersion: v1, kind: ConfigMap, name: ` + team + `}, type: Patch, content: {data: {v: "2"}}}]
`)
	}
	for _, team := range []string{"a", "b"} {
		require.Equal(t, api.PhaseCommitted, e.Ended("of-"+team).Status.Phase)
	}
}
