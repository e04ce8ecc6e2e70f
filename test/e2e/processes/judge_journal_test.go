package processes

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/testcluster"
)

// follows lists the phases that may come after each.
var follows = map[api.Phase][]api.Phase{
	"":                   {api.PhasePending, api.PhasePreparing, api.PhaseFailed},
	api.PhasePending:     {api.PhasePreparing, api.PhaseFailed},
	api.PhasePreparing:   {api.PhasePrepared, api.PhaseCommitting, api.PhaseFailed},
	api.PhasePrepared:    {api.PhaseCommitting, api.PhaseFailed},
	api.PhaseCommitting:  {api.PhaseCommitted, api.PhaseRollingBack},
	api.PhaseRollingBack: {api.PhaseRolledBack, api.PhaseFailed},
}

// rank orders the states of an item; none goes back.
var rank = map[api.ItemState]int{
	api.ItemPending: 0, api.ItemPrepared: 1, api.ItemCommitting: 2, api.ItemCommitted: 3,
	api.ItemRollingBack: 4, api.ItemRejected: 5, api.ItemRolledBack: 5, api.ItemUnresolved: 5,
}

// judgeJournal wants phases and items to go forward, and each checkpoint to follow
// the one before.
func (w *world) judgeJournal(s *saga) {
	seen := w.history.txns[s.name]
	for i := 1; i < len(seen); i++ {
		before, after := seen[i-1], seen[i]
		from, to := before.status.Phase, after.status.Phase
		assert.False(w.t, after.gone, "%s is gone", s.name)
		assert.Equal(w.t, before.uid, after.uid, "uid of %s", s.name)
		assert.GreaterOrEqual(w.t, after.status.Version, before.status.Version, "checkpoints of %s", s.name)
		if !after.gap {
			assert.LessOrEqual(w.t, after.status.Version-before.status.Version, int64(1), "checkpoints of %s", s.name)
			assert.True(w.t, from == to || slices.Contains(follows[from], to), "%s goes from %q to %s", s.name, from, to)
		} else {
			assert.False(w.t, from.Terminal() && from != to, "%s goes from %q to %s", s.name, from, to)
		}
		for j := range before.status.Items {
			was, is := before.status.Items[j].State, after.status.Items[j].State
			// Nothing was sent for an intent that is withdrawn when the rollback begins.
			withdrawn := was == api.ItemCommitting && is == api.ItemPrepared && from == api.PhaseCommitting && to != api.PhaseCommitting
			// Nor for one of a compensation, when the rollback is suspended.
			withdrawn = withdrawn || was == api.ItemRollingBack && is == api.ItemCommitted && before.status.SuspendTime == nil && after.status.SuspendTime != nil
			assert.True(w.t, withdrawn || rank[was] <= rank[is], "item %d of %s goes from %s to %s", j, s.name, was, is)
		}
	}
	last := seen[len(seen)-1].status
	assert.NotNil(w.t, last.CompletionTime, "%s has no completion time", s.name)
	for _, item := range last.Items {
		if last.Phase == api.PhaseCommitted {
			assert.Equal(w.t, api.ItemCommitted, item.State, "item %s of %s", item.Name, s.name)
		} else {
			assert.False(w.t, item.Committed, "item %s of %s is %s", item.Name, s.name, item.State)
		}
	}
	w.counts.add("checkpoints", int(last.Version))
}

// judgeLeases wants that anyone who takes a Lease from another has waited until it
// expired. All clocks are this machine's, and who takes over has first read the
// record that it lets expire.
func (w *world) judgeLeases() {
	assert.Equal(w.t, testcluster.LocksInTables(), len(w.history.tabled) > 0, "the locks of a namespace are in one Lease")
	for name, versions := range w.history.leases {
		for i := 1; i < len(versions); i++ {
			before, after := versions[i-1], versions[i]
			had, has := holder(before), holder(after)
			if had == has || had == "" || has == "" || after.gap {
				continue
			}
			leads := name == system+"/janusd-leader" || strings.HasPrefix(name, system+"/janusd-shard-")
			if !strings.HasPrefix(has, w.namespace+"/") && !leads {
				continue // a lock of another test, in the system's namespace
			}
			w.counts.add("Leases taken over after they had expired", 1)
			waited := after.spec.AcquireTime.Sub(before.spec.RenewTime.Time)
			least := time.Duration(*before.spec.LeaseDurationSeconds) * time.Second
			if leads {
				// client-go compares records of leader election by whole seconds, and
				// overlooks a renewal in the second of the one before.
				least -= time.Second
			}
			assert.GreaterOrEqual(w.t, waited, least,
				"%s goes from %s to %s\n%+v\n%+v", name, had, has, before.spec, after.spec)
			assert.Equal(w.t, *before.spec.LeaseTransitions+1, *after.spec.LeaseTransitions, "transitions of %s", name)
		}
	}
}

// holder is who has a Lease; nobody if it is gone.
func holder(v tenure) string {
	if v.gone || v.spec.HolderIdentity == nil {
		return ""
	}
	return *v.spec.HolderIdentity
}

func number(resourceVersion string) uint64 {
	n, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
