package fieldmerge

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// growsInStep asserts that four times as many take no more than four times the memory, and a half of that
// more: looking through all of them for each one takes sixteen times as much. Memory can be counted, time
// depends on the machine.
func growsInStep(t *testing.T, few int, work func(n int) func()) {
	t.Helper()
	less, more := testing.AllocsPerRun(1, work(few)), testing.AllocsPerRun(1, work(4*few))
	require.Greater(t, less, float64(few))
	assert.Less(t, more/less, 6.0, "%.0f allocations for %d, %.0f for %d", less, few, more, 4*few)
}

// withFinalizers is an object with many finalizers, all of one manager.
func withFinalizers(t *testing.T, n int, content, manager string) *unstructured.Unstructured {
	t.Helper()
	items, owned := make([]any, n), map[string]any{".": map[string]any{}}
	for n := range items {
		items[n] = fmt.Sprintf("a.b/%05d", n)
		owned[fmt.Sprintf("v:%q", items[n])] = map[string]any{}
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": content},
		"metadata": map[string]any{"name": "a", "finalizers": items},
	}}
	return written(t, obj, manager, map[string]any{"f:metadata": map[string]any{"f:finalizers": owned}})
}

// withData is a ConfigMap with many keys of one content, all of one manager.
func withData(t *testing.T, n int, content, manager string) *unstructured.Unstructured {
	t.Helper()
	data, owned := map[string]any{}, map[string]any{".": map[string]any{}}
	for n := range n {
		data[fmt.Sprintf("k%05d", n)] = content
		owned[fmt.Sprintf("f:k%05d", n)] = map[string]any{}
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": map[string]any{"name": "a"}}}
	return written(t, obj, manager, map[string]any{"f:data": owned})
}

// written is an object of which a manager owns fields.
func written(t *testing.T, obj *unstructured.Unstructured, manager string, fields map[string]any) *unstructured.Unstructured {
	t.Helper()
	raw, err := json.Marshal(fields)
	require.NoError(t, err)
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: raw},
	}})
	return obj
}

// It took minutes of CPU time for a megabyte of them, in which the Transactions of others waited.
func TestVeryManyListItemsAreRestoredAndHandedOver(t *testing.T) {
	growsInStep(t, 1000, func(n int) func() {
		i := Images{
			Before: withFinalizers(t, n, "old", "helm"), After: withFinalizers(t, n, "new", "helm"), Live: withFinalizers(t, n, "new", "kubectl"),
			Ours: func(string) bool { return false },
		}
		return func() {
			data := i.Restore().Desired.Object["data"].(map[string]any)
			assert.Equal(t, "old", data["a"])
			_, _, err := i.RestoreOwners()
			require.NoError(t, err)
			ours := i
			ours.Ours = func(manager string) bool { return manager == "kubectl" }
			_, _, err = ours.HandOver(Hands{Passing: func(string) bool { return false }})
			require.NoError(t, err)
		}
	})
}

func TestVeryManyConflictsAreNamed(t *testing.T) {
	growsInStep(t, 250, func(n int) func() {
		i := Images{
			Before: withData(t, n, "old", "helm"), After: withData(t, n, "new", "helm"), Live: withData(t, n, "theirs", "kubectl"),
			Ours: func(string) bool { return false },
		}
		return func() {
			found := i.Restore().Conflicts
			require.Len(t, found, n)
			assert.Equal(t, []string{"kubectl"}, found[0].Managers)
			found = i.Drift()
			require.Len(t, found, n)
			assert.Equal(t, []string{"kubectl"}, found[0].Managers)
			found, err := i.Reowned()
			require.NoError(t, err)
			assert.Len(t, found, n)
		}
	})
}

func TestVeryManyListItemsAreReleased(t *testing.T) {
	growsInStep(t, 1000, func(n int) func() {
		obj := withFinalizers(t, n, "any", "kubectl")
		return func() {
			released, err := Release{Managers: []string{"kubectl"}}.On(obj)
			require.NoError(t, err)
			items, _, _ := unstructured.NestedStringSlice(released.Content, "metadata", "finalizers")
			require.Len(t, items, n)
			assert.Equal(t, "a.b/00001", items[1])
		}
	})
}
