package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

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

// The time of a rollback was over when an object was to be created again, and there was no answer. A person
// asks for a recovery at once: the first creation may still land.
func TestARecoveryWaitsForWhatTheRollbackBeforeHasSent(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.stored.Spec.Timeout = ptr.To(api.Duration("5s"))
	refuseB(w)
	w.replies["undo a"] = []reply{{err: errLost}}
	w.policy.Recoveries = 0
	w.restart()
	var lost, again time.Time
	w.after["undo a: fails"] = func() {
		w.targets["a"] = "to be made anew"
		w.clock.Step(6 * time.Second)
		lost = w.clock.Now()
	}
	w.nth = func(_ int, who string) reply {
		if who == "undo a" {
			again = w.clock.Now()
		}
		return reply{}
	}
	w.run()
	require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
	w.ask("1")
	w.run()
	assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	assert.GreaterOrEqual(t, again.Sub(lost), testPolicy.SettleTime, w.transcript())
	assert.Equal(t, "1", w.stored.Status.HandledRecovery)
	oracle(t, w)
}
