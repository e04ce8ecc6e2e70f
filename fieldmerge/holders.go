package fieldmerge

import (
	"slices"
	"sort"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// holders are who owns the fields of an object, for those who ask of many fields: managedFields of
// a megabyte take long to read.
type holders struct {
	values      *lookup
	list, shown entries
	// all is what anyone owns, and allShown the same by what is shown of it.
	all, allShown *fieldpath.Set
	// tracked is what Tracked says.
	tracked bool
	err     error
}

func holdersOf(obj *unstructured.Unstructured) *holders {
	h := &holders{values: lookupIn(obj.Object), tracked: Tracked(obj)}
	if h.list, h.err = entriesOf(obj); h.err != nil {
		return h
	}
	h.all = h.list.union()
	if h.shown, h.err = shownOf(obj); h.err == nil {
		h.allShown = h.shown.union()
	}
	return h
}

// whenAsked reads who owns the fields of an object once, and not before it is asked.
func whenAsked(obj *unstructured.Unstructured) func() *holders {
	return sync.OnceValue(func() *holders { return holdersOf(obj) })
}

// via is below, and the subresource through which all of them own it, if it is one and the same.
func (h *holders) via(path fieldpath.Path, ours func(string) bool) (names []string, subresource string) {
	if h.err != nil || !h.values.has(path) {
		return nil, ""
	}
	if names, subresource = h.list.via(h.all, path, ours); len(names) == 0 {
		// Anyone who applied a field that is not shown keeps it, though others write the value.
		names, subresource = h.shown.via(h.allShown, path, ours)
	}
	return names, subresource
}

// below names who owns a field, as ownersBelow does.
func (h *holders) below(path fieldpath.Path, ours func(string) bool) []string {
	names, _ := h.via(path, ours)
	return names
}

func (l entries) via(all *fieldpath.Set, path fieldpath.Path, ours func(string) bool) (names []string, subresource string) {
	for _, e := range l {
		if !e.holds(all, path) || ours(e.Manager) {
			continue
		}
		if len(names) == 0 {
			subresource = e.Subresource
		} else if subresource != e.Subresource {
			subresource = ""
		}
		if !slices.Contains(names, e.Manager) {
			names = append(names, e.Manager)
		}
	}
	sort.Strings(names)
	return names, subresource
}
