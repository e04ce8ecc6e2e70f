package revision

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"janus.io/janus/api/v1alpha1"
)

func TestTheStateIsWhatARevisionHasLeft(t *testing.T) {
	left := func(edit func(*Revision)) string {
		r := example()
		r.Items[0].Before.After = "a"
		edit(&r)
		return State(r)
	}
	first := left(func(*Revision) {})
	assert.Len(t, first, 16)
	for name, edit := range map[string]func(*Revision){
		"who has made it, and how": func(r *Revision) {
			r.Transaction.Name, r.Items[0].Type, r.Items[0].Set, r.Items[0].Name = "other", v1alpha1.Update, "sha256:t", "renamed"
		},
		"in which order":     func(r *Revision) { r.Items[0], r.Items[1] = r.Items[1], r.Items[0] },
		"by another version": func(r *Revision) { r.Items[0].Target.APIVersion = "v2" },
		"in several steps": func(r *Revision) {
			once := r.Items[0]
			once.Before = &v1alpha1.BeforeImage{After: "in between"}
			r.Items = append([]Item{once}, r.Items...)
		},
	} {
		assert.Equal(t, first, left(edit), name)
	}
	for name, edit := range map[string]func(*Revision){
		"another content": func(r *Revision) { r.Items[0].Before.After = "b" },
		"another object":  func(r *Revision) { r.Items[0].Target.Name = "c" },
		"one object more": func(r *Revision) {
			r.Items = append(r.Items, Item{Target: v1alpha1.Target{Name: "d"}, Type: v1alpha1.Delete})
		},
		"not deleted": func(r *Revision) {
			r.Items[1].Type, r.Items[1].Before = v1alpha1.Patch, &v1alpha1.BeforeImage{After: "a"}
		},
	} {
		assert.NotEqual(t, first, left(edit), name)
	}
	assert.Empty(t, left(func(r *Revision) { r.Items[0].Before.After = "" }), "as of a Secret")
	assert.Empty(t, left(func(r *Revision) { r.Items[0].Before = nil }))
	assert.Empty(t, left(func(r *Revision) { r.Items = nil }))
}

// A revision is the same as the newest one before it after which its objects were as it has left them.
func TestWhichRevisionIsTheSame(t *testing.T) {
	a, b := v1alpha1.Target{Name: "a"}, v1alpha1.Target{Name: "b"}
	for name, c := range map[string]struct {
		all  []After
		want []int
	}{
		"none":                           {[]After{{a: "1"}, {a: "2"}}, []int{-1, -1}},
		"the one before":                 {[]After{{a: "1"}, {a: "1"}, {a: "1"}}, []int{-1, 0, 1}},
		"an older one":                   {[]After{{a: "1"}, {a: "2"}, {a: "1"}}, []int{-1, -1, 0}},
		"one that has left more":         {[]After{{a: "1", b: "1"}, {a: "2"}, {a: "1"}}, []int{-1, -1, 0}},
		"several together":               {[]After{{a: "1"}, {b: "1"}, {a: "2", b: "2"}, {a: "1", b: "1"}}, []int{-1, -1, -1, 1}},
		"not one about other objects":    {[]After{{a: "1"}, {b: "1"}, {a: "1"}}, []int{-1, -1, 0}},
		"not what is known of in part":   {[]After{{a: "1"}, {a: "1", b: "1"}}, []int{-1, -1}},
		"not what is not known":          {[]After{{a: ""}, {a: ""}}, []int{-1, -1}},
		"what is deleted":                {[]After{{a: absent}, {a: "1"}, {a: absent}}, []int{-1, -1, 0}},
		"not what was overwritten since": {[]After{{a: "1", b: "1"}, {a: "2"}, {b: "1"}}, []int{-1, -1, 0}},
	} {
		assert.Equal(t, c.want, SameAs(c.all), name)
	}
}

// What changes nothing, or leaves what the one before has left, pushes out no older one, and does
// not pile up either.
func TestWhichRevisionsAreForgotten(t *testing.T) {
	for _, c := range []struct {
		// all are states by rising number: "=" has written nothing, "?" is not known.
		all   string
		limit int
		left  string // the numbers
	}{
		{"a b c", 3, "1 2 3"},
		{"a b c d", 3, "2 3 4"},
		{"a b c d e f", 1, "6"},
		{"? ? ? ?", 2, "3 4"},
		// Again and again the same.
		{"a b = =", 2, "1 2 3 4"},
		{"a b b b", 2, "1 2 3 4"},
		{"a b b = b", 2, "1 2 4 5"},
		{"a b = = = = =", 2, "1 2 6 7"},
		{"a b b b b b b", 2, "1 2 6 7"},
		// What comes after them counts.
		{"a b = = c", 2, "2 3 4 5"},
		{"a b b c c d", 2, "4 5 6"},
		{"a = b", 1, "3"},
		{"a b a b a", 3, "3 4 5"},
		{"= = = a", 1, "4"},
		{"= = =", 2, "2 3"},
		{"a ? a", 3, "1 2 3"},
	} {
		var all []Entry
		for i, state := range strings.Fields(c.all) {
			e := Entry{Number: int64(i + 1), State: state, Unchanged: state == "="}
			if state == "?" || e.Unchanged {
				e.State = ""
			}
			all = append(all, e)
		}
		gone := map[int64]bool{}
		for _, e := range Outdated(all, c.limit) {
			gone[e.Number] = true
		}
		var left []string
		for _, e := range all {
			if !gone[e.Number] {
				left = append(left, fmt.Sprint(e.Number))
			}
		}
		assert.Equal(t, c.left, strings.Join(left, " "), "%s, %d", c.all, c.limit)
	}
}
