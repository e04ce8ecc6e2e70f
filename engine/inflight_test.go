package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
	"janus.io/janus/internal/errclass"
)

// wide has the intents of many items open at once.
func (w *world) wide(most int) *world {
	w.policy.Window = most
	w.restart()
	return w
}

// severalInHand are stories of Transactions with up to three open intents.
var severalInHand = []scenario{
	{"five changes are made three at a time", []string{"a", "b", "c", "d", "e"}, func(*world) {}, api.PhaseCommitted},
	{"the fourth of five is refused", []string{"a", "b", "c", "d", "e"}, func(w *world) { w.refuse["do d"] = errRefused }, api.PhaseRolledBack},
	{"the answer to the second is lost", []string{"a", "b", "c"}, func(w *world) {
		w.replies["do b"] = []reply{{err: errLost, lost: true}}
	}, api.PhaseCommitted},
	{"the server is busy at the second", []string{"a", "b", "c"}, func(w *world) { w.replies["do b"] = []reply{{err: errBusy}} }, api.PhaseCommitted},
	{"the process ends after the second", []string{"a", "b", "c", "d"}, func(w *world) {
		w.replies["do b"] = []reply{{err: errLost, lost: true, crash: true}}
	}, api.PhaseCommitted},
	{"the process ends and it is cancelled", []string{"a", "b", "c", "d"}, func(w *world) {
		w.replies["do b"] = []reply{{err: errLost, lost: true, crash: true}}
		w.after["-- the process ends"] = func() { w.cancel(api.CancelRollback) }
	}, api.PhaseRolledBack},
	{"it is suspended after the second", []string{"a", "b", "c", "d"}, func(w *world) {
		w.after["do b"] = w.suspend
		w.after["-- looks again in 1m15s"] = w.resume
	}, api.PhaseCommitted},
	{"it is suspended after the second, which was the last that a process did", []string{"a", "b", "c", "d"}, func(w *world) {
		w.replies["do b"] = []reply{{err: errLost, lost: true, crash: true}}
		w.after["-- the process ends"] = w.suspend
		w.after["-- looks again in 1m15s"] = w.resume
	}, api.PhaseCommitted},
	{"it is stopped after the second was rolled back", []string{"a", "b", "c", "d"}, func(w *world) {
		w.refuse["do d"] = errRefused
		w.after["undo b"] = func() {
			w.cancel(api.CancelStop)
			w.clock.Step(600 * time.Millisecond)
		}
	}, api.PhaseFailed},
	{"it is suspended while three are rolled back", []string{"a", "b", "c", "d"}, func(w *world) {
		w.refuse["do d"] = errRefused
		w.after["undo c"] = w.suspend
		w.after["-- looks again in 1m15s"] = w.resume
	}, api.PhaseRolledBack},
	{"the process ends after the second was rolled back", []string{"a", "b", "c", "d"}, func(w *world) {
		w.refuse["do d"] = errRefused
		w.replies["undo b"] = []reply{{err: errLost, lost: true, crash: true}}
	}, api.PhaseRolledBack},
	{"another client has written what the second is to roll back", []string{"a", "b", "c", "d"}, func(w *world) {
		w.refuse["do d"], w.refuse["undo b"] = errRefused, errWritten
	}, api.PhaseFailed},
	{"one object is changed twice and both are rolled back, one after the other", []string{"b", "a1", "a2", "c"}, func(w *world) {
		w.refuse["do c"] = errRefused
	}, api.PhaseRolledBack},
	{"the time is over while three are made", []string{"a", "b", "c", "d"}, func(w *world) {
		w.after["do b"] = func() { w.clock.Step(time.Hour) }
	}, api.PhaseRolledBack},
	{"the last change of a window takes long", []string{"a", "b", "c", "d"}, func(w *world) {
		w.after["do b"] = func() { w.clock.Step(900 * time.Millisecond) }
	}, api.PhaseCommitted},
}

func TestTranscriptsWithSeveralInHand(t *testing.T) {
	for _, s := range severalInHand {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t, s.items...).wide(3)
			s.set(w)
			w.run()
			require.NoError(t, checkOrder(w.lines), w.transcript())
			assert.Equal(t, s.ends, phaseOf(w), w.transcript())
			oracle(t, w)
			golden(t, "transcripts/"+strings.NewReplacer(" ", "-", ",", "").Replace(s.name)+".txt", []byte(w.transcript()))
		})
	}
}

// A process may end after any call, however many intents are open.
func TestACrashWithSeveralInHandChangesNothingAboutTheEnd(t *testing.T) {
	for _, most := range []int{2, 3, 100} {
		for _, refused := range []string{"", "c", "e"} {
			t.Run(fmt.Sprintf("%d and %q", most, refused), func(t *testing.T) {
				for n := 1; ; n++ {
					w := newWorld(t, "a", "b", "c", "d", "e").wide(most)
					ends := api.PhaseCommitted
					if refused != "" {
						w.refuse["do "+refused], ends = errRefused, api.PhaseRolledBack
					}
					w.nth = func(call int, _ string) reply { return reply{crash: call == n} }
					w.run()
					require.NoError(t, checkOrder(w.lines), w.transcript())
					require.Equal(t, ends, phaseOf(w), w.transcript())
					oracle(t, w)
					if w.calls < n {
						return
					}
				}
			})
		}
	}
}

// The price of many changes, and of rolling them back, is a few writes of the status.
func TestTheStatusIsWrittenOnceForManyItems(t *testing.T) {
	names := make([]string, 40)
	for i := range names {
		names[i] = fmt.Sprintf("%c-%c", 'a'+i/26, 'a'+i%26)
	}
	checkpoints := func(set func(*world)) int {
		w := newWorld(t, names...).wide(0)
		set(w)
		w.run()
		return strings.Count(w.transcript(), "checkpoint ")
	}
	assert.Equal(t, 4, checkpoints(func(*world) {}), "validated, prepared and begun, in effect, ended")
	assert.Equal(t, 6, checkpoints(func(w *world) { w.refuse["do "+names[39]] = errRefused }),
		"validated, prepared and begun, turned, about to be rolled back, rolled back, ended")
}

// What takes long is put on record meanwhile: anyone who looks sees how far it is.
func TestProgressIsRecordedWhileChangesTakeLong(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d", "e", "f").wide(0)
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		w.after["do "+name] = func() { w.clock.Step(300 * time.Millisecond) }
	}
	w.run()
	var got []string
	for _, txn := range w.reached {
		got = append(got, txn.Status.Progress)
	}
	assert.Equal(t, []string{"0/6", "0/6", "2/6", "4/6", "6/6", "6/6"}, got)
}

// However many intents a process has left open, one settle time is enough for all.
func TestAllOpenIntentsAreSettledInOneSettleTime(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d").wide(0)
	w.nth = func(_ int, who string) reply { return reply{crash: who == "do a"} }
	w.after["-- the process ends"] = func() { w.nth = nil; w.cancel(api.CancelRollback) }
	w.run()
	require.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	assert.Less(t, w.clock.Now().Sub(fixture.Start), 2*testPolicy.SettleTime, w.transcript())
}

// A process that is told to end records what it has done.
func TestAStopRecordsWhatIsOver(t *testing.T) {
	w := newWorld(t, "a", "b", "c").wide(0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.after["do b"] = cancel
	assert.Equal(t, Result{}, w.engine.Run(ctx, w.stored.DeepCopy()))
	assert.Equal(t, "checkpoint 3 Committing: a Committed, b Committed, c Committing", w.lines[len(w.lines)-1])
	w.run()
	assert.Equal(t, api.PhaseCommitted, phaseOf(w))
	oracle(t, w)
}

// Anyone who is told that a Transaction was let go is told what it leaves, though that is not
// on record.
func TestWhatIsLetGoIsToldAsItIs(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d", "e", "f").wide(0)
	w.replies["do d"] = []reply{{err: errLost}}
	w.after["do d"] = w.delete
	w.run()
	require.Nil(t, w.stored, w.transcript())
	var states []api.ItemState
	for _, item := range w.told.Status.Items {
		states = append(states, item.State)
	}
	assert.Equal(t, []api.ItemState{
		api.ItemCommitted, api.ItemCommitted, api.ItemCommitted, api.ItemCommitting, api.ItemPrepared, api.ItemPrepared,
	}, states, w.transcript())
	assert.Equal(t, "3/6", w.told.Status.Progress)
}

// What an earlier write of the status did not get through is not asked of the targets.
func TestWhatIsInHandOutlivesAWriteOfSomebodyElse(t *testing.T) {
	w := newWorld(t, "a", "b", "c").wide(0)
	w.after["do b"] = func() {
		w.stored.Labels = map[string]string{"team": "shop"}
		w.bump()
	}
	w.run()
	assert.Equal(t, api.PhaseCommitted, phaseOf(w))
	assert.NotContains(t, w.transcript(), "observe", "nobody else has written the status")
	assert.Contains(t, w.transcript(), "fails, "+errclass.StaleVersion)
}

// What one process has in flight is void once another has gone on with the Transaction.
func TestWhatIsInHandIsVoidOnceAnotherHasGoneOn(t *testing.T) {
	w := newWorld(t, "a", "b", "c").wide(0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.after["checkpoint 2"] = cancel
	w.engine.Run(ctx, w.stored.DeepCopy())
	first := w.engine
	require.Equal(t, api.ItemCommitting, w.stored.Status.Items[0].State, w.transcript())

	w.restart()
	w.replies["do a"] = []reply{{err: errLost, lost: true, crash: true}}
	_, crash := w.once()
	require.True(t, crash, w.transcript())

	w.engine = first
	w.say("-- the first goes on")
	w.run()
	assert.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
	_, then, _ := strings.Cut(w.transcript(), "-- the first goes on")
	assert.Contains(t, then, "observe a: applied", "another may have made it")
	oracle(t, w)
}

func TestOnlyAnOpenIntentIsOne(t *testing.T) {
	txn := fixture.Transaction("a", "b", "c", "d")
	for i, state := range []api.ItemState{api.ItemPending, api.ItemPrepared, api.ItemCommitting, api.ItemCommitted} {
		txn.Status.Items = append(txn.Status.Items, api.Item{Name: txn.Spec.Changes[i].Name, State: state})
	}
	for i := range txn.Status.Items {
		in, err := intentOf(txn, i, api.ItemCommitting)
		if txn.Status.Items[i].State != api.ItemCommitting {
			require.ErrorContains(t, err, "no intent of it is on record")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, i, in.Index())
		assert.Equal(t, "c", in.Item().Name)
		assert.Equal(t, "c", in.Change().Name)
		assert.Same(t, txn, in.Transaction())
	}
}

// An item of which nothing was written is neither rolled back nor handed over.
func TestThatNothingWasWrittenIsSaidOnlyIfNoRequestMayHaveLanded(t *testing.T) {
	for name, c := range map[string]struct {
		before []reply
		want   bool
	}{
		"at the first attempt":              {nil, true},
		"after the server was busy":         {[]reply{{err: errBusy}}, true},
		"after the answer was lost":         {[]reply{{err: errLost}}, false},
		"after the process has ended":       {[]reply{{err: errLost, crash: true}}, false},
		"after busy, and the end of it all": {[]reply{{err: errBusy}, {err: errLost, crash: true}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "a", "b")
			w.idle = map[string]bool{"a": true}
			w.replies["do a"] = c.before
			w.run()
			assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase, w.transcript())
			assert.Equal(t, []bool{c.want, false}, []bool{w.stored.Status.Items[0].Unchanged, w.stored.Status.Items[1].Unchanged}, w.transcript())
		})
	}
}
