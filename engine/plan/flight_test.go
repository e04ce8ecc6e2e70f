package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
)

// What a process has in flight decides what it does next.
func TestDecideWithSeveralInFlight(t *testing.T) {
	const (
		prepared, committing, committed = api.ItemPrepared, api.ItemCommitting, api.ItemCommitted
		rollingBack, rolledBack         = api.ItemRollingBack, api.ItemRolledBack
	)
	these := func(is ...int) map[int]bool { return fresh(is...).Fresh }
	for name, tt := range map[string]struct {
		txn    *api.Transaction
		flight InFlight
		verb   Verb
		item   int
	}{
		"the first in order":                             {with(api.PhaseCommitting, committing, committing), InFlight{Fresh: these(0, 1)}, Do, 0},
		"the next":                                       {with(api.PhaseCommitting, committing, committing), InFlight{Fresh: these(1), Over: these(0)}, Do, 1},
		"one of which it is not known":                   {with(api.PhaseCommitting, committing, committing), InFlight{Fresh: these(1)}, Observe, 0},
		"none is left of the window":                     {with(api.PhaseCommitting, committing, committing, prepared), InFlight{Over: these(0, 1)}, Record, 0},
		"none is left at all":                            {with(api.PhaseCommitting, committed, committing), InFlight{Over: these(1)}, Finish, 0},
		"it is time":                                     {with(api.PhaseCommitting, committing, committing), InFlight{Fresh: these(1), Over: these(0), Due: true}, Record, 0},
		"it is time and nothing is over":                 {with(api.PhaseCommitting, committing, committing), InFlight{Fresh: these(0, 1), Due: true}, Do, 0},
		"everything is over before a cancel":             {cancelled(with(api.PhaseCommitting, committing), api.CancelRollback), InFlight{Over: these(0)}, Finish, 0},
		"everything is over of another spec":             {changed(with(api.PhaseCommitting, committing)), InFlight{Over: these(0)}, StartRollback, 0},
		"everything is over of a shorter spec":           {edited(1, with(api.PhaseCommitting, committed, committing)), InFlight{Over: these(1)}, StartRollback, 0},
		"cancelled":                                      {cancelled(with(api.PhaseCommitting, committing, committing), api.CancelRollback), InFlight{Fresh: these(1), Over: these(0)}, StartRollback, 0},
		"suspended":                                      {suspendedSpec(with(api.PhaseCommitting, committing, committing)), InFlight{Fresh: these(1), Over: these(0)}, Record, 0},
		"suspended, with nothing over":                   {suspendedSpec(with(api.PhaseCommitting, committed, committing)), InFlight{Fresh: these(1)}, Suspend, 0},
		"suspended, and found not in effect":             {suspendedSpec(with(api.PhaseCommitting, committed, committing)), InFlight{Parked: these(1)}, Suspend, 0},
		"no longer suspended":                            {with(api.PhaseCommitting, committed, committing), InFlight{Parked: these(1)}, Observe, 1},
		"one is not ready":                               {awaiting(with(api.PhaseCommitting, committed)), InFlight{}, AwaitReady, 0},
		"one is not ready, and it is time to look":       {awaiting(with(api.PhaseCommitting, committed)), InFlight{LookDue: true}, Look, 0},
		"one is not ready, and it is suspended":          {suspendedSpec(awaiting(with(api.PhaseCommitting, committed))), InFlight{LookDue: true}, Suspend, 0},
		"the last is rolled back first":                  {with(api.PhaseRollingBack, rollingBack, rollingBack), InFlight{Fresh: these(0, 1)}, Undo, 1},
		"the one before":                                 {with(api.PhaseRollingBack, rollingBack, rollingBack), InFlight{Fresh: these(0), Over: these(1)}, Undo, 0},
		"all that were opened":                           {with(api.PhaseRollingBack, committed, rollingBack), InFlight{Over: these(1)}, Record, 0},
		"all":                                            {with(api.PhaseRollingBack, rollingBack, rolledBack), InFlight{Over: these(0)}, Record, 0},
		"it is time while rolling back":                  {with(api.PhaseRollingBack, rollingBack, rollingBack), InFlight{Fresh: these(0), Over: these(1), Due: true}, Record, 0},
		"a later one is to be opened first":              {with(api.PhaseRollingBack, rollingBack, committed), InFlight{}, OpenUndo, 1},
		"what is not known, before anything":             {with(api.PhaseRollingBack, committing, committed), InFlight{}, ObserveUndo, 0},
		"and what is over recorded before":               {with(api.PhaseRollingBack, rollingBack, committed, rollingBack), InFlight{Over: these(2)}, Record, 0},
		"stopped while rolling back":                     {cancelled(with(api.PhaseRollingBack, rollingBack, rollingBack), api.CancelStop), InFlight{Fresh: these(0), Over: these(1)}, Record, 0},
		"stopped, and the rest not yet begun":            {cancelled(with(api.PhaseRollingBack, rollingBack, rolledBack), api.CancelStop), InFlight{Fresh: these(0)}, AcceptPartial, 0},
		"stopped, and one of which is not known":         {cancelled(with(api.PhaseRollingBack, rollingBack, rolledBack), api.CancelStop), InFlight{}, SkipUndo, 0},
		"stopped, and found to be in effect":             {cancelled(with(api.PhaseRollingBack, committed, rollingBack), api.CancelStop), InFlight{Parked: these(1)}, AcceptPartial, 0},
		"stopped, and another of which it is not known":  {cancelled(with(api.PhaseRollingBack, rollingBack, rollingBack), api.CancelStop), InFlight{Parked: these(1)}, SkipUndo, 0},
		"suspended while rolling back":                   {suspendedSpec(with(api.PhaseRollingBack, rollingBack, rollingBack)), InFlight{Fresh: these(0), Over: these(1)}, Record, 0},
		"suspended, and the rest not yet begun":          {suspendedSpec(with(api.PhaseRollingBack, rollingBack, rolledBack)), InFlight{Fresh: these(0)}, Suspend, 0},
		"suspended, and found to be in effect":           {suspendedSpec(with(api.PhaseRollingBack, committed, rollingBack)), InFlight{Parked: these(1)}, Suspend, 0},
		"suspended, with one that a later one covers":    {suspendedSpec(coveredOpen()), InFlight{}, Suspend, 0},
		"no longer suspended, and found to be in effect": {with(api.PhaseRollingBack, committed, rollingBack), InFlight{Parked: these(1)}, Undo, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(tt.txn, tt.flight, fixture.Start, limits)
			assert.Equal(t, tt.verb, got.Verb)
			assert.Equal(t, tt.item, got.Item)
		})
	}
}

// coveredOpen rolls back, and the change of an object whose outcome is not known comes
// before one that is in effect.
func coveredOpen() *api.Transaction {
	t := with(api.PhaseRollingBack, api.ItemCommitting, api.ItemCommitted)
	t.Status.Items[0].Target = t.Status.Items[1].Target
	return t
}

// awaiting waits for its first change to be ready.
func awaiting(t *api.Transaction) *api.Transaction {
	wait(&t.Spec, t.Spec.Changes[0].Name)
	t.Status.Items[0].WaitStartTime = ptr.To(metav1.NewTime(fixture.Start))
	return t
}
