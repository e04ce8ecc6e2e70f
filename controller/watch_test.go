package controller

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
)

// seen is a Transaction as an informer gets it from the API server.
func seen(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"changes": []any{map[string]any{"type": "Delete"}}},
		"status": map[string]any{"phase": "Committing", "observedGeneration": int64(1), "items": []any{map[string]any{"name": "a"}}},
	}}
	u.SetGroupVersionKind(api.Kind)
	u.SetNamespace("shop")
	u.SetName("deploy")
	u.SetUID("7f3a")
	u.SetResourceVersion("7")
	u.SetGeneration(1)
	u.SetFinalizers([]string{api.Finalizer})
	u.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"})
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
	if change != nil {
		change(u)
	}
	return u
}

// decodedWith is a Transaction as the watch decodes it.
func decodedWith(t *testing.T, change func(*unstructured.Unstructured)) *decoded {
	t.Helper()
	return decodedOf(t, seen(change))
}

func decodedOf(t *testing.T, u *unstructured.Unstructured) *decoded {
	t.Helper()
	o := &decoded{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o))
	return o
}

func setPhase(phase string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		u.SetResourceVersion("8")
		_ = unstructured.SetNestedField(u.Object, phase, "status", "phase")
	}
}

func deletedAt(u *unstructured.Unstructured) {
	u.SetResourceVersion("8")
	u.SetGeneration(2)
	u.SetDeletionTimestamp(&metav1.Time{Time: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)})
}

func TestTrimKeepsWhatIsReadAndNothingElse(t *testing.T) {
	t.Parallel()
	trimmed, err := trim(decodedWith(t, deletedAt))
	require.NoError(t, err)
	assert.Equal(t, &summary{
		name: types.NamespacedName{Namespace: "shop", Name: "deploy"}, uid: "7f3a", resourceVersion: "8",
		generation: 2, observed: 1, deleted: true, begun: true, phase: api.PhaseCommitting,
		progress: &progress{reason: reasonRunning, since: decodedWith(t, deletedAt).CreationTimestamp.Time},
	}, trimmed)
	key, err := cache.MetaNamespaceKeyFunc(trimmed)
	require.NoError(t, err)
	assert.Equal(t, "shop/deploy", key)

	again, err := trim(trimmed)
	require.NoError(t, err)
	assert.Same(t, trimmed, again, "what is trimmed stays as it is")
}

func TestTrimKeepsWhenItEnded(t *testing.T) {
	t.Parallel()
	trimmed, err := trim(decodedWith(t, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "2030-01-02T03:04:05Z", "status", "completionTime")
	}))
	require.NoError(t, err)
	assert.Equal(t, time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), trimmed.(*summary).completion.UTC())
	trimmed, err = trim(decodedWith(t, nil))
	require.NoError(t, err)
	assert.Zero(t, trimmed.(*summary).completion)
}

func TestTrimLeavesATombstoneAlone(t *testing.T) {
	t.Parallel()
	tombstone := cache.DeletedFinalStateUnknown{Key: "shop/deploy"}
	got, err := trim(tombstone)
	require.NoError(t, err)
	assert.Equal(t, tombstone, got)
}

func TestWhatIsWorthALook(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*unstructured.Unstructured)
		want   bool
	}{
		{"a status write is ours", setPhase("RollingBack"), false},
		{"a finalizer is ours", func(u *unstructured.Unstructured) { u.SetResourceVersion("8"); u.SetFinalizers(nil) }, false},
		{"a label is nobody's business", func(u *unstructured.Unstructured) {
			u.SetResourceVersion("8")
			u.SetLabels(map[string]string{"a": "b"})
		}, false},
		{"a deletion", deletedAt, true},
		{"a deletion without a new generation", func(u *unstructured.Unstructured) { deletedAt(u); u.SetGeneration(1) }, true},
		{"a new spec", func(u *unstructured.Unstructured) { u.SetResourceVersion("8"); u.SetGeneration(2) }, true},
		{"another Transaction of the same name", func(u *unstructured.Unstructured) { u.SetResourceVersion("8"); u.SetUID("other") }, true},
		{"the resync changes nothing", nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before, err := trim(decodedWith(t, nil))
			require.NoError(t, err)
			after, err := trim(decodedWith(t, tt.change))
			require.NoError(t, err)
			assert.Equal(t, tt.want, worthALook(before, after))
		})
	}
}

// endedIn2020 is one that is to stay for some seconds after its end.
func endedIn2020(ttl int64) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		setPhase("Committed")(u)
		_ = unstructured.SetNestedField(u.Object, "2020-01-01T00:00:00Z", "status", "completionTime")
		_ = unstructured.SetNestedField(u.Object, ttl, "spec", "ttlSecondsAfterFinished")
	}
}

func TestWhatIsQueued(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*unstructured.Unstructured)
		want   int
	}{
		{"a new Transaction", func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, "status") }, 1},
		{"a running one", nil, 1},
		{"a Failed one, for it may be recovered", setPhase("Failed"), 1},
		{"a Committed one is done", setPhase("Committed"), 0},
		{"a RolledBack one is done", setPhase("RolledBack"), 0},
		{"a Committed one whose spec was changed since", func(u *unstructured.Unstructured) { setPhase("Committed")(u); u.SetGeneration(2) }, 1},
		{"a Committed one whose time is over", endedIn2020(60), 1},
		{"a Committed one whose time is not over", endedIn2020(math.MaxInt32), 0},
		{"a Committed one that is deleted", func(u *unstructured.Unstructured) { setPhase("Committed")(u); deletedAt(u) }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &Controller{
				engine: engine.New(engine.Ports{}, clock.RealClock{}, plan.DefaultPolicy), held: newHeldShards(), watches: newWatches(),
				queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]()),
			}
			c.held.begin(0)
			c.watches.of[metav1.NamespaceAll] = &watch{}
			defer c.queue.ShutDown()
			small, err := trim(decodedWith(t, tt.change))
			require.NoError(t, err)
			c.handlers().OnAdd(small, true)
			assert.Equal(t, tt.want, c.queue.Len())
		})
	}
}
