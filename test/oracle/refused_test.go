package oracle

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
)

// What a Transaction has deleted and creates again, its rollback creates again: that is refused as well.
func TestRefusalsOfARollbackAreCountedApart(t *testing.T) {
	for _, c := range []struct {
		what    string
		changes []api.ChangeType
		refused int
		breach  bool
	}{
		{"a creation", []api.ChangeType{api.Create}, mostRefusals, false},
		{"a creation, once more", []api.ChangeType{api.Create}, mostRefusals + 1, true},
		{"a deletion and a creation", []api.ChangeType{api.Delete, api.Create}, mostRefusals + mostRecreations, false},
		{"a deletion and a creation, once more", []api.ChangeType{api.Delete, api.Create}, mostRefusals + mostRecreations + 1, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			of := &run{Run: &Run{}, user: account}
			for _, kind := range c.changes {
				of.Items = append(of.Items, mapB)
				of.Spec.Changes = append(of.Spec.Changes, api.Change{Type: kind})
			}
			judged := &trial{targets: map[Ref][]*run{mapB: {of}}}
			judged.Calls = slices.Repeat([]faultinject.Call{{Method: "POST", Code: 403, User: account, Resource: mapB.Resource, Namespace: mapB.Namespace, Name: mapB.Name}}, c.refused)
			judged.judgeRefused(of)
			assert.Equal(t, c.breach, len(judged.breaches) > 0)
		})
	}
}
