package enforced_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authzv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

func TestMain(m *testing.M) {
	os.Exit(testcluster.Main(m, testcluster.Options{CRDs: "../../../deploy/enforced/objects", Alone: true}))
}

const (
	settle = 60 * time.Second
	poll   = 20 * time.Millisecond
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// A world is a namespace in which locks are enforced.
type world struct {
	*harness.Env
	t      *testing.T
	tables dynamic.ResourceInterface
}

// newWorld makes one. The policy is known to be evaluated in it.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Env: harness.New(t), t: t}
	w.tables = w.Dynamic.Resource(api.LockTableResource).Namespace(w.Namespace)
	for _, file := range []string{"policy.yaml", "rbac.yaml"} {
		objects, err := os.ReadFile(filepath.Join(harness.Root(), "deploy", "enforced", "objects", file))
		require.NoError(t, err)
		require.NoError(t, w.ApplyYAML(t.Context(), "", string(objects)))
	}
	for _, right := range []authzv1.ResourceAttributes{
		{Verb: "update", Group: api.GroupVersion.Group, Resource: api.LockTableResource.Resource},
		{Verb: "impersonate", Group: "authentication.k8s.io", Resource: "userextras", Subresource: "backup.janus.io/made-by", Name: "janusd"},
	} {
		require.NoError(t, w.AwaitRight(t.Context(), harness.Identity, right))
	}
	w.Merge("admin", "v1 Namespace/"+w.Namespace, `{"metadata":{"labels":{"janus.io/enforce-locks":"true"}}}`)
	w.enter(map[string]string{"configmaps/probe": "a/b/c"})
	w.Until("the policy is enforced", func() bool { return apierrors.IsForbidden(w.tryWrite("probe")) })
	require.NoError(t, w.tables.Delete(t.Context(), api.LockTableName, metav1.DeleteOptions{}))
	w.Until("the table is gone", func() bool { return w.tryWrite("probe") == nil })
	return w
}

// in is the world as a part of a test uses it.
func (w *world) in(t *testing.T) *world {
	part := *w
	part.t = t
	return &part
}

// tryWrite asks, without effect, whether an administrator may create a ConfigMap.
func (w *world) tryWrite(name string) error {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
	_, err := w.Dynamic.Resource(configMaps).Namespace(w.Namespace).Create(context.Background(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// enter makes the table say what it is to say, whatever it says now.
func (w *world) enter(locks map[string]string) {
	w.t.Helper()
	w.enterIn(w.t.Context(), locks)
}

func (w *world) enterIn(ctx context.Context, locks map[string]string) {
	w.t.Helper()
	require.NoError(w.t, harness.Poll(ctx, func(ctx context.Context) (bool, error) {
		table, err := w.tables.Get(ctx, api.LockTableName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			table = &unstructured.Unstructured{Object: map[string]any{}}
			table.SetGroupVersionKind(api.LockTableKind)
			table.SetName(api.LockTableName)
			table, err = w.tables.Create(ctx, table, metav1.CreateOptions{})
		}
		if err != nil || unstructured.SetNestedStringMap(table.Object, locks, "locks") != nil {
			return false, nil // A conflict, or it is just being deleted.
		}
		_, err = w.tables.Update(ctx, table, metav1.UpdateOptions{})
		return err == nil, nil
	}), "the table is written")
}

// locks are those in the table, nil if there is none.
func (w *world) locks() map[string]string {
	w.t.Helper()
	table, err := w.tables.Get(w.t.Context(), api.LockTableName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(w.t, err)
	locks, _, err := unstructured.NestedStringMap(table.Object, "locks")
	require.NoError(w.t, err)
	return locks
}

// noneLeft waits until no lock is in the table: what lands late is removed late.
func (w *world) noneLeft() {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return len(w.locks()) == 0 }, settle, poll, "locks are left")
}
