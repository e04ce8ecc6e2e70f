package mutate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
)

func TestADefinitionThatIsOlderThanAnObjectHasNotOutgrownIt(t *testing.T) {
	created := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	entry := func(after time.Duration, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Subresource: subresource, Time: ptr.To(metav1.NewTime(created.Add(after)))}
	}
	object := &unstructured.Unstructured{}
	object.SetCreationTimestamp(metav1.NewTime(created))
	for name, c := range map[string]struct {
		generation int64
		entries    []metav1.ManagedFieldsEntry
		may        bool
	}{
		"it was never changed":            {1, []metav1.ManagedFieldsEntry{entry(time.Hour, "")}, false},
		"it was changed before":           {2, []metav1.ManagedFieldsEntry{entry(-time.Second, "")}, false},
		"in the same second":              {2, []metav1.ManagedFieldsEntry{entry(0, "")}, true},
		"after that, by one of two":       {2, []metav1.ManagedFieldsEntry{entry(-time.Hour, ""), entry(time.Hour, "")}, true},
		"its status alone has changed":    {2, []metav1.ManagedFieldsEntry{entry(-time.Hour, ""), entry(time.Hour, "status")}, false},
		"nobody knows when":               {2, nil, true},
		"nobody knows when of its fields": {2, []metav1.ManagedFieldsEntry{{}}, true},
	} {
		definition := &unstructured.Unstructured{}
		definition.SetGeneration(c.generation)
		definition.SetManagedFields(c.entries)
		assert.Equal(t, c.may, mayBeOutgrown(definition, object), name)
	}
}

func TestWhereTwoObjectsDiffer(t *testing.T) {
	before := map[string]any{"metadata": map[string]any{"a": "b"}, "spec": map[string]any{"size": int64(1), "list": []any{"a", "b"}, "map": map[string]any{"k": "v"}}}
	after := map[string]any{"metadata": map[string]any{}, "spec": map[string]any{"size": int64(1), "list": []any{"a", "c"}, "map": map[string]any{"k": "v"}, "new": true}}
	for path, differ := range map[string]bool{
		"spec": true, "spec.size": false, "spec.list": true, "spec.list[0]": false, "spec.list[1]": true, "spec.list[7]": false, "spec.map[k]": false,
		"spec.new": true, "spec.new.below": false, "spec.none": false, "spec.size.below": false,
	} {
		assert.Equal(t, differ, differAt(before, after, path), path)
	}
	before = map[string]any{"spec": map[string]any{"map": map[string]any{"a.b/c": "v", "d.e": "v"}, "map.of": []any{map[string]any{"x": "v"}}}}
	after = map[string]any{"spec": map[string]any{"map": map[string]any{"a.b/c": "w", "d.e": "v"}, "map.of": []any{map[string]any{"x": "w"}}}}
	for path, differ := range map[string]bool{
		"": true, "spec.map[a.b/c]": true, "spec.map.a.b/c": true, "spec.map[d.e]": false, "spec.map.d.e": false, "spec.map[a]": false,
		"spec.map.of[0].x": true, "spec.map.of[0].y": false, "spec.map.of[1].x": false,
	} {
		assert.Equal(t, differ, differAt(before, after, path), path)
	}
	assert.True(t, differInContent(before, after))
	assert.False(t, differInContent(before, map[string]any{"spec": before["spec"], "status": "x"}))
	assert.True(t, differInContent(before, map[string]any{}))
}
