package fieldmerge

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/value"
)

// withFinalizers is an object with as many finalizers as fit, all of one manager.
func withFinalizers(t *testing.T, content, manager string) *unstructured.Unstructured {
	t.Helper()
	items, owned := make([]any, 40_000), map[string]any{".": map[string]any{}}
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

// written is an object of which a manager owns fields.
func written(t *testing.T, obj *unstructured.Unstructured, manager string, fields map[string]any) *unstructured.Unstructured {
	t.Helper()
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: raw},
	}})
	return obj
}

// It took minutes of CPU time, in which the Transactions of others waited.
func TestAnObjectWithVeryManyListItemsIsRestoredInSeconds(t *testing.T) {
	t.Parallel()
	started := time.Now()
	i := Images{
		Before: withFinalizers(t, "old", "helm"), After: withFinalizers(t, "new", "helm"), Live: withFinalizers(t, "new", "kubectl"),
		Ours: func(string) bool { return false },
	}
	if data := i.Restore().Desired.Object["data"].(map[string]any); data["a"] != "old" {
		t.Errorf("data %v", data)
	}
	if _, _, err := i.RestoreOwners(); err != nil {
		t.Fatal(err)
	}
	i.Ours = func(manager string) bool { return manager == "kubectl" }
	if _, _, err := i.HandOver(Hands{Passing: func(string) bool { return false }}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(started); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestAnIndexFindsWhatLookingThroughTheListFinds(t *testing.T) {
	t.Parallel()
	numbers, keyed, mixed := []any{}, []any{}, []any{}
	for n := range int64(40) {
		numbers = append(numbers, 1<<53+n, float64(n), fmt.Sprint(n), n%2 == 0, nil)
		keyed = append(keyed, map[string]any{"port": 80 + n/2, "name": fmt.Sprint("n", n)}, map[string]any{"port": n}, "odd")
		mixed = append(mixed, n, map[string]any{"a": n})
	}
	object := map[string]any{"numbers": numbers, "keyed": keyed, "mixed": mixed}
	look := lookupIn(object)
	for _, name := range []string{"numbers", "keyed", "mixed"} {
		var elements []fieldpath.PathElement
		for _, v := range []any{int64(1 << 53), int64(1<<53 + 1), int64(3), 3.0, 3.5, "3", "x", true, nil, map[string]any{"a": int64(3)}} {
			of := value.NewValueInterface(v)
			elements = append(elements, fieldpath.PathElement{Value: &of})
			if v != nil {
				elements = append(elements, fieldpath.PathElement{Key: fieldpath.KeyByFields("port", v)})
			}
		}
		elements = append(elements, fieldpath.PathElement{Key: fieldpath.KeyByFields("port", int64(81), "name", "n3")},
			fieldpath.PathElement{Key: fieldpath.KeyByFields("port", int64(81), "name", "n9")})
		for _, element := range elements {
			path := fieldpath.Path{{FieldName: &name}, element}
			want, there := valueAt(object, path)
			got, found := look.at(path)
			if found != there || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v %v, want %v %v", path, got, found, want, there)
			}
		}
	}
}

// withManyKeys is a ConfigMap with many keys of one content, all of one manager.
func withManyKeys(t *testing.T, content, manager string) *unstructured.Unstructured {
	t.Helper()
	data, owned := map[string]any{}, map[string]any{".": map[string]any{}}
	for n := range 10_000 {
		data[fmt.Sprintf("k%05d", n)] = content
		owned[fmt.Sprintf("f:k%05d", n)] = map[string]any{}
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": map[string]any{"name": "a"}}}
	return written(t, obj, manager, map[string]any{"f:data": owned})
}

// It took minutes of CPU time, too.
func TestVeryManyConflictsAreNamedInSeconds(t *testing.T) {
	t.Parallel()
	started := time.Now()
	i := Images{
		Before: withManyKeys(t, "old", "helm"), After: withManyKeys(t, "new", "helm"), Live: withManyKeys(t, "theirs", "kubectl"),
		Ours: func(string) bool { return false },
	}
	if found := i.Restore().Conflicts; len(found) != 10_000 || fmt.Sprint(found[0].Managers) != "[kubectl]" {
		t.Errorf("%d conflicts", len(found))
	}
	if found := i.Drift(); len(found) != 10_000 || fmt.Sprint(found[0].Managers) != "[kubectl]" {
		t.Errorf("%d fields have drifted", len(found))
	}
	if found, err := i.Reowned(); err != nil || len(found) != 10_000 {
		t.Errorf("%d fields have other owners, error %v", len(found), err)
	}
	if took := time.Since(started); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestVeryManyListItemsAreReleasedInSeconds(t *testing.T) {
	t.Parallel()
	started := time.Now()
	released, err := Release{Managers: []string{"kubectl"}}.On(withFinalizers(t, "any", "kubectl"))
	if err != nil {
		t.Fatal(err)
	}
	if items, _, _ := unstructured.NestedStringSlice(released.Content, "metadata", "finalizers"); len(items) != 40_000 || items[1] != "a.b/00001" {
		t.Errorf("%d finalizers", len(items))
	}
	if took := time.Since(started); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}
