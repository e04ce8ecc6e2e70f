package fieldmerge

import (
	"fmt"
	"strings"
	"testing"
)

// shaped is an object with n fields f0, f1 and so on, of which the first few have another
// value, and the names of all.
func shaped(n, changed int) (content string, names []string) {
	var b strings.Builder
	for i := range n {
		value := "old"
		if i < changed {
			value = "new"
		}
		fmt.Fprintf(&b, `,"f%d":%q`, i, value)
		names = append(names, fmt.Sprint("f", i))
	}
	return "{" + b.String()[1:] + "}", names
}

// changedThing is a thing of n fields before and after a change of three of them, which
// has taken them from kubectl.
func changedThing(b *testing.B, n int) Images {
	b.Helper()
	const item = "janus-0123abcd-0"
	was, names := shaped(n, 0)
	is, _ := shaped(n, 3)
	return Images{
		Before: ownedThing(b, was, "kubectl: "+strings.Join(names, " ")),
		After:  thingOf(b, is),
		Live:   ownedThing(b, is, "kubectl: "+strings.Join(names[3:], " "), item+": "+strings.Join(names[:3], " ")),
		Ours:   func(manager string) bool { return manager == item },
	}
}

// What undoing a change costs before anything is sent.
func BenchmarkRestore(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("%d fields", n), func(b *testing.B) {
			images := changedThing(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if got := images.Restore(); len(got.Conflicts) > 0 {
					b.Fatal(got.Conflicts)
				}
			}
		})
	}
}

// What a hand-over costs before anything is sent.
func BenchmarkHandOver(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("%d fields", n), func(b *testing.B) {
			images := changedThing(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, changed, err := images.HandOver(Hands{Own: "janus", Passing: nobody}); err != nil || !changed {
					b.Fatal(changed, err)
				}
			}
		})
	}
}
