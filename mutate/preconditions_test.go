package mutate_test

import (
	"encoding/json"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/errclass"
)

// refusesStaleWrites sends what the strategies send, with a stale resourceVersion
// and with the uid of another object.
func refusesStaleWrites(e *env, obj *unstructured.Unstructured) {
	e.t.Helper()
	first := e.live(obj)
	e.merge("somebody", obj, `{"metadata":{"annotations":{"moved":"on"}}}`)
	force := true
	for name, meta := range map[string]map[string]any{
		"resourceVersion": {"uid": string(first.GetUID()), "resourceVersion": first.GetResourceVersion()},
		"uid":             {"uid": "00000000-0000-0000-0000-000000000000", "resourceVersion": e.live(obj).GetResourceVersion()},
	} {
		before := e.live(obj)
		wantStale := func(what string, err error) {
			e.t.Helper()
			require.Error(e.t, err, "%s with another %s", what, name)
			if name == "resourceVersion" {
				assert.Equal(e.t, errclass.StaleVersion, errclass.ReasonOf(err), "%s: %v", what, err)
			}
		}
		meta["annotations"] = map[string]any{"ours": "x"}
		merge, err := json.Marshal(map[string]any{"metadata": meta})
		require.NoError(e.t, err)
		_, err = e.resource(obj).Patch(e.t.Context(), obj.GetName(), types.MergePatchType, merge, metav1.PatchOptions{FieldManager: "janus"})
		wantStale("a merge patch", err)

		ops, err := json.Marshal([]any{
			map[string]any{"op": "add", "path": "/metadata/annotations", "value": map[string]any{"ours": "x"}},
			map[string]any{"op": "add", "path": "/metadata/uid", "value": meta["uid"]},
			map[string]any{"op": "add", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]},
		})
		require.NoError(e.t, err)
		_, err = e.resource(obj).Patch(e.t.Context(), obj.GetName(), types.JSONPatchType, ops, metav1.PatchOptions{FieldManager: "janus"})
		wantStale("a JSON patch", err)

		meta["name"] = obj.GetName()
		apply, err := json.Marshal(map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "metadata": meta})
		require.NoError(e.t, err)
		_, err = e.resource(obj).Patch(e.t.Context(), obj.GetName(), types.ApplyPatchType, apply, metav1.PatchOptions{FieldManager: "janus", Force: &force})
		wantStale("an apply", err)

		put := before.DeepCopy()
		put.SetUID(types.UID(meta["uid"].(string)))
		put.SetResourceVersion(meta["resourceVersion"].(string))
		put.SetAnnotations(map[string]string{"ours": "x"})
		_, err = e.resource(obj).Update(e.t.Context(), put, metav1.UpdateOptions{FieldManager: "janus"})
		wantStale("an update", err)

		uid, version := put.GetUID(), put.GetResourceVersion()
		err = e.resource(obj).Delete(e.t.Context(), obj.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		wantStale("a delete", err)
		assert.NotContains(e.t, e.live(obj).GetAnnotations(), "ours")
	}
}
