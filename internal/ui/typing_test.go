package ui

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	api "janus.io/janus/api/v1alpha1"
)

// following is a watch of a Cluster, and what the API server tells it.
func following(t *testing.T) (changes watch.Interface, told *watch.FakeWatcher) {
	t.Helper()
	told = watch.NewFake()
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{api.Resource: "TransactionList"})
	client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) { return true, told, nil })
	_, changes, err := NewCluster(client, nil, "").Follow(t.Context())
	require.NoError(t, err)
	return changes, told
}

func seen(name string, spec any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": api.GroupVersion.String(), "kind": "Transaction", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

// A goroutine that stays makes the bubble fail.
func TestNothingStaysOfAWatchThatIsStoppedWithAnEventInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			changes, told := following(t)
			told.Add(seen("a", map[string]any{})) // It is taken, and nobody takes it from there.
			changes.Stop()
			changes.Stop()
			assert.True(t, told.IsStopped())
		}
	})
}

func TestAWatchTellsOfTransactionsAndEndsWithItsSource(t *testing.T) {
	changes, told := following(t)
	defer changes.Stop()
	go func() {
		told.Modify(seen("a", map[string]any{}))
		told.Modify(seen("b", "no spec"))
		told.Stop()
	}()
	event := <-changes.ResultChan()
	assert.Equal(t, watch.Modified, event.Type)
	assert.Equal(t, "a", event.Object.(*api.Transaction).Name)
	event = <-changes.ResultChan()
	assert.Equal(t, watch.Error, event.Type, "of what is no Transaction")
	_, open := <-changes.ResultChan()
	assert.False(t, open)
}
