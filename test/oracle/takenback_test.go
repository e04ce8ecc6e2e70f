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
