package enforced_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// TestTheKindMayGoAndComeBack removes the kind of the tables while the policy is there. Then
// everybody may write, a Transaction waits, and with the kind it is as before.
func TestTheKindMayGoAndComeBack(t *testing.T) {
	cluster, err := testcluster.Start(testcluster.Options{CRDs: "../../../deploy/enforced/objects"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	client, err := harness.NewClient(cluster.Config())
	require.NoError(t, err)
	w := &world{Env: &harness.Env{Client: client, Namespace: "default"}, t: t}
	w.tables = client.Dynamic.Resource(api.LockTableResource).Namespace("default")
	objects := filepath.Join(harness.Root(), "deploy", "enforced", "objects")
	apply := func(file string) {
		text, err := os.ReadFile(filepath.Join(objects, file))
		require.NoError(t, err)
		require.NoError(t, client.ApplyYAML(t.Context(), "", string(text)))
	}
	apply("policy.yaml")
	_, err = client.Kube.CoreV1().Namespaces().Patch(t.Context(), "default", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"janus.io/enforce-locks":"true"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	refused := func() bool { return apierrors.IsForbidden(w.tryWrite("a")) }
	txn := &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "txn", UID: "u"}}
	txn.Status.Items = []api.Item{item("v1", "ConfigMap", "configmaps", "default", "a")}
	locks, _ := w.around(leases{})
	_, err = locks.Acquire(t.Context(), txn, never)
	require.NoError(t, err)
	require.Eventually(t, refused, settle, poll)

	kinds := client.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	require.NoError(t, kinds.Delete(t.Context(), "locktables.backup.janus.io", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { return w.tryWrite("a") == nil }, settle, poll)
	require.Eventually(t, func() bool {
		_, err := locks.Acquire(t.Context(), txn, never)
		return errclass.Is(err, errclass.KindNotFound) && errclass.ClassOf(err) == errclass.Retryable
	}, settle, poll, "a Transaction waits for the kind")
	require.NoError(t, locks.Release(t.Context(), txn, engine.SearchNot), "without the kind there is nothing to remove")

	apply("backup.janus.io_locktables.yaml")
	require.Eventually(t, func() bool {
		_, err := locks.Acquire(t.Context(), txn, never)
		return err == nil
	}, settle, poll)
	require.Eventually(t, refused, settle, poll, "the policy is alive again")
	require.NoError(t, locks.Release(t.Context(), txn, engine.SearchNot))
	require.Eventually(t, func() bool { return !refused() }, settle, poll)
}
