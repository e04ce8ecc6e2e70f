package fieldmerge

import (
	"slices"
	"testing"
)

// What admission stamps on an object in a write of whomever belongs to nobody.
func TestStampsOfNobodyAreListed(t *testing.T) {
	t.Parallel()
	const owners = `"managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:theirs":{}}}}}]`
	before := thingOf(t, `{"metadata":{"annotations":{"old":"1"}}}`)
	for _, c := range []struct {
		name, live string
		want       []string
	}{
		{"a stamp", `{"metadata":{"annotations":{"old":"1","stamp":"policy"},` + owners + `}}`, []string{".metadata.annotations.stamp"}},
		{"a label", `{"metadata":{"labels":{"stamp":"policy","theirs":"x"},` + owners + `}}`, []string{".metadata.labels.stamp"}},
		{"somebody's label", `{"metadata":{"labels":{"theirs":"x"},` + owners + `}}`, nil},
		{"changed, and there before", `{"metadata":{"annotations":{"old":"2"},` + owners + `}}`, nil},
		{"the mark of Janus", `{"metadata":{"labels":{"janus.io/transaction":"a"},` + owners + `}}`, nil},
		{"nothing is known of who wrote", `{"metadata":{"annotations":{"stamp":"policy"}}}`, nil},
	} {
		var got []string
		for _, f := range (Images{Before: before, Live: thingOf(t, c.live)}).Stamps() {
			got = append(got, f.Path)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
