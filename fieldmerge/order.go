package fieldmerge

import (
	"slices"
	"sort"
)

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}

// inOrder returns the merged items of a list, which have their positions before, after
// and in live, and last of their values what became of them. Their order is that
// of before, and what others have added comes after what it followed; but where
// others have changed the order since, theirs stays, and what is put back comes
// after what it followed.
func inOrder(items []child) []any {
	was, is := ranked(items, 0), ranked(items, 2)
	base, rest := was, is
	if reordered(items, 1, 2) {
		base, rest = is, was
	}
	out := make([]any, 0, len(items))
	for _, i := range interleave(base, rest) {
		out = append(out, items[i].values[3])
	}
	return out
}

// reordered reports whether two lists have the items that both have in another
// order.
func reordered(items []child, one, other int) bool {
	a, b := ranked(items, one), ranked(items, other)
	return !slices.Equal(common(a, b), common(b, a))
}

// ranked returns the items that one of the lists has, in its order.
func ranked(items []child, list int) []int {
	var out []int
	for i, item := range items {
		if item.at[list] >= 0 {
			out = append(out, i)
		}
	}
	sort.Slice(out, func(a, b int) bool { return items[out[a]].at[list] < items[out[b]].at[list] })
	return out
}

// common is what two orders share, in the order of the first.
func common(order, other []int) []int {
	in := map[int]bool{}
	for _, i := range other {
		in[i] = true
	}
	var out []int
	for _, i := range order {
		if in[i] {
			out = append(out, i)
		}
	}
	return out
}

// interleave adds to base what only rest has, each after what it follows in rest.
func interleave(base, rest []int) []int {
	in := map[int]bool{}
	for _, i := range base {
		in[i] = true
	}
	after := map[int][]int{}
	previous := -1
	for _, i := range rest {
		if in[i] {
			previous = i
		} else {
			after[previous] = append(after[previous], i)
		}
	}
	out := after[-1]
	for _, i := range base {
		out = append(append(out, i), after[i]...)
	}
	return out
}
