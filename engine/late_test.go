package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// A lateJournal is one whose write that begins a rollback gets no answer, and lands later.
type lateJournal struct {
	Journal
	w      *world
	late   *api.Transaction
	landed bool
}

// Checkpoint implements Journal.
func (j *lateJournal) Checkpoint(ctx context.Context, t *api.Transaction) (*api.Transaction, error) {
	if j.late == nil && t.Status.Phase == api.PhaseRollingBack {
		j.late = t.DeepCopy()
		return nil, errclass.New(errclass.Unknown, "Timeout", "write", "Transaction", "timed out")
	}
	return j.Journal.Checkpoint(ctx, t)
}

// land has the write land, if nothing was written since.
func (j *lateJournal) land() {
	if j.landed = j.late.ResourceVersion == j.w.stored.ResourceVersion; j.landed {
		j.w.stored.Status = *j.late.Status.DeepCopy()
		j.w.bump()
	}
}

// A rollback begins because a change was refused, and the write that says so gets no answer. The change
// is accepted when it is sent again. Were that write to land then, the Transaction would be RolledBack
// with the change in effect: so it is replaced before the change is sent.
func TestAStatusWriteThatLandsLateWritesOffNoChange(t *testing.T) {
	w := newWorld(t, "a", "b").wide(3)
	j := &lateJournal{Journal: w.engine.Journal, w: w}
	w.engine.Journal = j
	w.replies["do b"] = []reply{{err: errRefused}}
	armed := false
	w.nth = func(int, string) reply {
		if j.late != nil && !armed {
			armed = true
			w.after["do b"] = j.land
		}
		return reply{}
	}
	w.run()
	require.NotNil(t, j.late, "no rollback has begun")
	require.True(t, armed)
	assert.False(t, j.landed)
	assert.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
	assert.Equal(t, map[string]int{"a": 1, "b": 1}, w.dos)
	assert.Empty(t, w.undos)
}
