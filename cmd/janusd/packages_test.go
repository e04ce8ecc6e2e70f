package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		return false
	})
	p := startWith(t, g.kubeconfig, e.Namespace)
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
	var found packages.PackageTransaction
	require.Eventually(t, func() bool {
		u, err := e.Dynamic.Resource(packages.Resource).Get(t.Context(), "delete", metav1.GetOptions{})
		require.NoError(t, err)
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &found))
		return found.Status.CompletionTime != nil && len(found.Finalizers) == 0
	}, patience, 50*time.Millisecond)
	c := meta.FindStatusCondition(found.Status.Conditions, packages.Validated)
	require.NotNil(t, c)
	assert.Equal(t, "PackageManagerMissing", c.Reason)

	require.NoError(t, definitions.Delete(t.Context(), "packagetransactions.pkg.janus.io", metav1.DeleteOptions{}))
	p.await("PackageTransactions are served no more")
	e.Submit("again", changes)
}
