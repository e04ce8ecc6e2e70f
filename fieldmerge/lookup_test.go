package fieldmerge

import (
	"fmt"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/value"
)

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
