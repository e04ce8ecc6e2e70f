package snapshot

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// shapedThing is an object with n fields, of which the first few have another value.
func shapedThing(n, changed int) *unstructured.Unstructured {
	fields := map[string]any{}
	for i := range n {
		fields[fmt.Sprint("f", i)] = "old"
		if i < changed {
			fields[fmt.Sprint("f", i)] = "new"
		}
	}
	return &unstructured.Unstructured{Object: fields}
}

// What a before-image costs on its way to a ConfigMap, and back.
func BenchmarkEncode(b *testing.B) {
	for _, n := range []int{10, 1000} {
		record := Record{Type: "Patch", Target: refTo(configMapKind, "shop", "a"), Before: shapedThing(n, 0), After: shapedThing(n, 3)}
		b.Run(fmt.Sprintf("%d fields", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				encode(b, record)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{10, 1000} {
		data := encode(b, Record{Type: "Patch", Target: refTo(configMapKind, "shop", "a"), Before: shapedThing(n, 0), After: shapedThing(n, 3)})
		b.Run(fmt.Sprintf("%d fields", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decode(b, data)
			}
		})
	}
}
