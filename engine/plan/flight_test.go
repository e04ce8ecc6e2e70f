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
	for name, tt := range map[string]struct {
		txn    *api.Transaction
		flight InFlight
		verb   Verb
		item   int
	}{
		"the first in order":                             {with(api.PhaseCommitting, committing, committing), InFlight{Known: Known{0: Unsent, 1: Unsent}}, Do, 0},
		"the next":                                       {with(api.PhaseCommitting, committing, committing), InFlight{Known: Known{1: Unsent, 0: Over}}, Do, 1},
		"one of which it is not known":                   {with(api.PhaseCommitting, committing, committing), InFlight{Known: Known{1: Unsent}}, Observe, 0},
		"none is left of the window":                     {with(api.PhaseCommitting, committing, committing, prepared), InFlight{Known: Known{0: Over, 1: Over}}, Record, 0},
		"none is left at all":                            {with(api.PhaseCommitting, committed, committing), InFlight{Known: Known{1: Over}}, Finish, 0},
		"it is time":                                     {with(api.PhaseCommitting, committing, committing), InFlight{Known: Known{1: Unsent, 0: Over}, Due: true}, Record, 0},
		"it is time and nothing is over":                 {with(api.PhaseCommitting, committing, committing), InFlight{Known: Known{0: Unsent, 1: Unsent}, Due: true}, Do, 0},
		"everything is over before a cancel":             {cancelled(with(api.PhaseCommitting, committing), api.CancelRollback), InFlight{Known: Known{0: Over}}, Finish, 0},
		"everything is over of another spec":             {changed(with(api.PhaseCommitting, committing)), InFlight{Known: Known{0: Over}}, StartRollback, 0},
		"everything is over of a shorter spec":           {edited(1, with(api.PhaseCommitting, committed, committing)), InFlight{Known: Known{1: Over}}, StartRollback, 0},
		"cancelled":                                      {cancelled(with(api.PhaseCommitting, committing, committing), api.CancelRollback), InFlight{Known: Known{1: Unsent, 0: Over}}, StartRollback, 0},
		"suspended":                                      {suspendedSpec(with(api.PhaseCommitting, committing, committing)), InFlight{Known: Known{1: Unsent, 0: Over}}, Record, 0},
		"suspended, with nothing over":                   {suspendedSpec(with(api.PhaseCommitting, committed, committing)), InFlight{Known: Known{1: Unsent}}, Suspend, 0},
		"suspended, and found not in effect":             {suspendedSpec(with(api.PhaseCommitting, committed, committing)), InFlight{Known: Known{1: Parked}}, Suspend, 0},
		"no longer suspended":                            {with(api.PhaseCommitting, committed, committing), InFlight{Known: Known{1: Parked}}, Observe, 1},
		"one is not ready":                               {awaiting(with(api.PhaseCommitting, committed)), InFlight{}, AwaitReady, 0},
		"one is not ready, and it is time to look":       {awaiting(with(api.PhaseCommitting, committed)), InFlight{ReadyCheckDue: true}, CheckReady, 0},
		"one is not ready, and it is suspended":          {suspendedSpec(awaiting(with(api.PhaseCommitting, committed))), InFlight{ReadyCheckDue: true}, Suspend, 0},
		"the last is rolled back first":                  {with(api.PhaseRollingBack, rollingBack, rollingBack), InFlight{Known: Known{0: Unsent, 1: Unsent}}, Undo, 1},
		"the one before":                                 {with(api.PhaseRollingBack, rollingBack, rollingBack), InFlight{Known: Known{0: Unsent, 1: Over}}, Undo, 0},
		"all that were opened":                           {with(api.PhaseRollingBack, committed, rollingBack), InFlight{Known: Known{1: Over}}, Record, 0},
		"all":                                            {with(api.PhaseRollingBack, rollingBack, rolledBack), InFlight{Known: Known{0: Over}}, Record, 0},
		"it is time while rolling back":                  {with(api.PhaseRollingBack, rollingBack, rollingBack), InFlight{Known: Known{0: Unsent, 1: Over}, Due: true}, Record, 0},
		"a later one is to be opened first":              {with(api.PhaseRollingBack, rollingBack, committed), InFlight{}, OpenUndo, 1},
		"what is not known, before anything":             {with(api.PhaseRollingBack, committing, committed), InFlight{}, ObserveUndo, 0},
		"and what is over recorded before":               {with(api.PhaseRollingBack, rollingBack, committed, rollingBack), InFlight{Known: Known{2: Over}}, Record, 0},
		"stopped while rolling back":                     {cancelled(with(api.PhaseRollingBack, rollingBack, rollingBack), api.CancelStop), InFlight{Known: Known{0: Unsent, 1: Over}}, Record, 0},
		"stopped, and the rest not yet begun":            {cancelled(with(api.PhaseRollingBack, rollingBack, rolledBack), api.CancelStop), InFlight{Known: Known{0: Unsent}}, AcceptPartial, 0},
		"stopped, and one of which is not known":         {cancelled(with(api.PhaseRollingBack, rollingBack, rolledBack), api.CancelStop), InFlight{}, SkipUndo, 0},
		"stopped, and found to be in effect":             {cancelled(with(api.PhaseRollingBack, committed, rollingBack), api.CancelStop), InFlight{Known: Known{1: Parked}}, AcceptPartial, 0},
		"stopped, and another of which it is not known":  {cancelled(with(api.PhaseRollingBack, rollingBack, rollingBack), api.CancelStop), InFlight{Known: Known{1: Parked}}, SkipUndo, 0},
		"suspended while rolling back":                   {suspendedSpec(with(api.PhaseRollingBack, rollingBack, rollingBack)), InFlight{Known: Known{0: Unsent, 1: Over}}, Record, 0},
		"suspended, and the rest not yet begun":          {suspendedSpec(with(api.PhaseRollingBack, rollingBack, rolledBack)), InFlight{Known: Known{0: Unsent}}, Suspend, 0},
		"suspended, and found to be in effect":           {suspendedSpec(with(api.PhaseRollingBack, committed, rollingBack)), InFlight{Known: Known{1: Parked}}, Suspend, 0},
		"suspended, with one that a later one covers":    {suspendedSpec(coveredOpen()), InFlight{}, Suspend, 0},
		"no longer suspended, and found to be in effect": {with(api.PhaseRollingBack, committed, rollingBack), InFlight{Known: Known{1: Parked}}, Undo, 1},
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

// What is known of an intent follows from what has happened to it, whatever that was.
func TestWhatIsKnownOfAnIntent(t *testing.T) {
	for name, tt := range map[string]struct {
		events []Event
		want   Knowledge
	}{
		"another process has recorded it":           {nil, Unknown},
		"it was recorded":                           {[]Event{Recorded}, Unsent},
		"it was sent, and refused":                  {[]Event{Recorded, Sent}, Ineffective},
		"the reply was lost":                        {[]Event{Recorded, Sent, Lost}, Unknown},
		"it was sent again after that, and refused": {[]Event{Recorded, Sent, Lost, Sent}, Unknown},
		"it is in effect":                           {[]Event{Recorded, Sent, Lost, Ended}, Over},
		"it is over, and the answer comes again":    {[]Event{Recorded, Sent, Ended, Lost}, Over},
		"nothing was sent, and it is left":          {[]Event{Recorded, Left}, ParkedIneffective},
		"it was refused, and is left":               {[]Event{Recorded, Sent, Left}, ParkedIneffective},
		"it is taken up again":                      {[]Event{Recorded, Sent, Left, TakenUp}, Ineffective},
		"another's is left":                         {[]Event{Left}, Parked},
		"another's is taken up again":               {[]Event{Left, TakenUp}, Unknown},
		"another's is left, and sent again":         {[]Event{Left, Sent}, Unknown},
		"it is recorded once more":                  {[]Event{Recorded, Sent, Lost, Ended, Recorded}, Unsent},
	} {
		t.Run(name, func(t *testing.T) {
			known := Unknown
			for _, e := range tt.events {
				known = known.After(e)
			}
			assert.Equal(t, tt.want, known, "it is %s", known)
		})
	}
}

// Once a request may have taken effect, nothing but a new record or the target's own word
// takes the doubt away.
func TestADoubtIsNotForgotten(t *testing.T) {
	for _, from := range []Knowledge{Unknown, Parked} {
		for _, e := range []Event{Sent, Lost, Left, TakenUp} {
			assert.False(t, from.After(e).NoEffect(), "%s after event %d", from, e)
		}
	}
	for from := Unknown; from <= ParkedIneffective; from++ {
		assert.Equal(t, from == Over, from.After(Lost) != Unknown, "%s", from)
		assert.Equal(t, Over, from.After(Ended), "%s", from)
		assert.Equal(t, Unsent, from.After(Recorded), "%s", from)
	}
}
