package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
)

// An undo of all that has come since passes over what has written nothing.
func TestAnAwaitHasChangedNothing(t *testing.T) {
	t.Parallel()
	r := &run{Run: &Run{Spec: api.TransactionSpec{Changes: []api.Change{{Type: api.Await}, {Type: api.Patch}}}}}
	committed, skipped := item{state: string(api.ItemCommitted)}, item{state: string(api.ItemSkipped)}
	assert.False(t, r.hasChanged(&state{items: []item{committed, skipped}}))
	assert.False(t, r.hasChanged(&state{items: []item{committed, {state: string(api.ItemCommitted), unchanged: true}}}))
	assert.True(t, r.hasChanged(&state{items: []item{committed, committed}}))
}

// Another client may have deleted an object right before a Delete whose answer was lost.
func TestADeletionMayBeTakenForOnesOwn(t *testing.T) {
	t.Parallel()
	deleted := &version{Version: &Version{Ref: mapA, Deleted: true}, uid: "gone"}
	for what, c := range map[string]struct {
		kind  api.ChangeType
		image string
		item  item
		want  bool
	}{
		"a Delete of it":              {api.Delete, "gone", item{state: string(api.ItemCommitted)}, true},
		"a Delete that found nothing": {api.Delete, "gone", item{state: string(api.ItemCommitted), unchanged: true}, false},
		"a Delete that was refused":   {api.Delete, "gone", item{state: string(api.ItemRejected)}, false},
		"a Delete of another object":  {api.Delete, "other", item{state: string(api.ItemCommitted)}, false},
		"a Patch":                     {api.Patch, "gone", item{state: string(api.ItemCommitted)}, false},
	} {
		c.item.before = &image{uid: c.image}
		r := &run{Run: &Run{Items: []Ref{mapA}, Spec: api.TransactionSpec{Changes: []api.Change{{Type: c.kind}}}}}
		r.states = []*state{{version: &version{Version: &Version{}}, phase: string(api.PhaseCommitted), items: []item{c.item}}}
		assert.Equal(t, c.want, r.mayHaveDeleted(deleted), what)
	}
}
