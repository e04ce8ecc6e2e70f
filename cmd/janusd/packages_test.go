package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	packages "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/test/harness"
)

// janusd notices that the kind is installed, and that it is gone. Without Crossplane it says so.
func TestPackageTransactionsAreRunWhileTheirKindIsInstalled(t *testing.T) {
	e := newEnv(t)
	e.ClusterWide()
	var asked atomic.Int64
	g := newGate(t, func(r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/packagetransactions") {
			asked.Add(1)
		}
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/namespaces/default/events")
	})
	p := startWith(t, g.kubeconfig, e.Namespace, "--metrics-bind-address=127.0.0.1:0")
	p.await("watching Transactions")
	e.Submit("deploy", changes)
	committed(t, e, "deploy")
	require.Zero(t, asked.Load(), "the API server is not asked for what it has not")

	objects := filepath.Join(harness.Root(), "deploy", "packages", "objects")
	for _, file := range []string{"pkg.janus.io_packagetransactions.yaml", "rbac.yaml"} {
		text, err := os.ReadFile(filepath.Join(objects, file))
		require.NoError(t, err)
		e.Apply(string(text))
	}
	definitions := e.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	t.Cleanup(func() {
		_ = definitions.Delete(context.Background(), "packagetransactions.pkg.janus.io", metav1.DeleteOptions{})
	})
	p.await("watching PackageTransactions")
	e.Served("pkg.janus.io/v1alpha1 PackageTransaction")
	e.Apply(strings.ReplaceAll(`
apiVersion: pkg.janus.io/v1alpha1
kind: PackageTransaction
metadata: {name: delete}
spec: {change: Delete, delete: {source: xpkg.acme.io/acme/bucket}, serviceAccountRef: {namespace: shop, name: deployer}}
`, "shop", e.Namespace))
	found := over(t, e, "delete")
	c := meta.FindStatusCondition(found.Status.Conditions, packages.Validated)
	require.NotNil(t, c)
	assert.Equal(t, "PackageManagerMissing", c.Reason)

	// It has ended, although its event is not written yet.
	<-g.reached
	close(g.open)
	var told eventsv1.Event
	e.Until("there is an event", func() bool {
		list, err := e.Kube.EventsV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		at := slices.IndexFunc(list.Items, func(o eventsv1.Event) bool { return o.Regarding.UID == found.UID })
		if at >= 0 {
			told = list.Items[at]
		}
		return at >= 0
	})
	assert.Equal(t, []string{"Warning", "PackageManagerMissing", c.Message}, []string{told.Type, told.Reason, told.Note})
	said, err := e.Shell().Run(t.Context(), "kubectl describe ptxn delete")
	require.NoError(t, err, said)
	assert.Regexp(t, `(?s)\nEvents:.*Warning +PackageManagerMissing .*janusd +Crossplane is not installed`, said)
	_, metrics := p.get("metrics", "/metrics")
	for _, want := range []string{
		`janus_package_transactions_total{change="Delete",outcome="ValidationFailed"} 1`, `janus_package_transactions{state="waiting"} 0`,
		`janus_package_transaction_duration_seconds_count{outcome="ValidationFailed"} 1`,
	} {
		assert.Contains(t, metrics, want)
	}

	areServed(t, metrics, ofPackages)

	// One that is lost is logged, and nothing else is held up by it.
	g.refused.Store(true)
	e.Apply(strings.ReplaceAll(`
apiVersion: pkg.janus.io/v1alpha1
kind: PackageTransaction
metadata: {name: delete-too}
spec: {change: Delete, delete: {source: xpkg.acme.io/acme/bucket}, serviceAccountRef: {namespace: shop, name: deployer}}
`, "shop", e.Namespace))
	over(t, e, "delete-too")
	p.await("Server rejected event (will not retry!)")

	require.NoError(t, definitions.Delete(t.Context(), "packagetransactions.pkg.janus.io", metav1.DeleteOptions{}))
	p.await("PackageTransactions are served no more")
	e.Submit("again", changes)
}

// over waits for the end of a PackageTransaction.
func over(t *testing.T, e *harness.Env, name string) packages.PackageTransaction {
	t.Helper()
	var found packages.PackageTransaction
	require.Eventually(t, func() bool {
		u, err := e.Dynamic.Resource(packages.Resource).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &found))
		return found.Status.CompletionTime != nil && len(found.Finalizers) == 0
	}, patience, 50*time.Millisecond)
	return found
}
