package fieldmerge

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What belongs to nobody, was not there and was not foretold, admission has added.
func TestFieldsThatAdmissionHasAddedAreListed(t *testing.T) {
	t.Parallel()
	before := cupOf(t, `{"a":"1"}`, "tester Apply a")
	after := cupOf(t, `{"a":"2","foretold":"x"}`, "janus-x-0 Apply a")
	for _, c := range []struct {
		name          string
		live          *unstructured.Unstructured
		values, marks []string
	}{
		{"nothing", cupOf(t, `{"a":"1"}`, "tester Apply a"), nil, nil},
		{"a field", cupOf(t, `{"a":"1","extra":"x"}`, "tester Apply a"), []string{".spec.extra"}, nil},
		{"an object", cupOf(t, `{"a":"1","extra":{"x":"y"}}`, "tester Apply a"), []string{".spec.extra.x"}, nil},
		{"an object with nothing in it", cupOf(t, `{"a":"1","extra":{}}`, "tester Apply a"), nil, nil},
		{"another client's field", cupOf(t, `{"a":"1","extra":"x"}`, "tester Apply a", "person Update extra"), nil, nil},
		{"a field beside another client's", cupOf(t, `{"a":"1","theirs":"x","extra":"x"}`, "tester Apply a", "person Update theirs"), nil, []string{".spec.extra"}},
		{"a field beside one of the control plane", cupOf(t, `{"a":"1","theirs":"x","extra":"x"}`, "tester Apply a", "kube-controller-manager Update theirs"), []string{".spec.extra"}, nil},
		{"what was foretold", cupOf(t, `{"a":"1","foretold":"x"}`, "tester Apply a"), nil, nil},
		{"another value of what was there", cupOf(t, `{"a":"3"}`, "tester Apply a"), nil, nil},
		{"replicas that are scaled", cupOf(t, `{"a":"1","replicas":3}`, "tester Apply a"), nil, nil},
		{"nothing is known of who wrote", cupOf(t, `{"a":"1","extra":"x"}`), nil, nil},
	} {
		values, marks := Images{Before: before, After: after, Live: c.live, Ours: janusOwn}.Added()
		if !slices.Equal(namesOf(values), c.values) || !slices.Equal(namesOf(marks), c.marks) {
			t.Errorf("%s: got %q and %q, want %q and %q", c.name, namesOf(values), namesOf(marks), c.values, c.marks)
		}
	}
}

func namesOf(list []FieldConflict) (out []string) {
	for _, f := range list {
		out = append(out, f.Path)
	}
	return out
}
