package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/memory"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// A process that starts looks once at what ended a short while ago: one that has died
// since may have been late with it.
func TestWhatEndedLatelyIsClearedUpOnceByEachProcess(t *testing.T) {
	w := newWorld(t, "a")
	w.run()
	looks := func() int { return strings.Count(strings.Join(w.lines, "\n"), "release the locks") }
	assert.Equal(t, 1, looks(), "the process that ended it knows that nothing is left")
	w.run()
	assert.Equal(t, 1, looks())
	w.restart()
	w.run()
	w.run()
	assert.Equal(t, 2, looks(), "the next one looks once")
	w.clock.Step(memory.Suspicion)
	w.restart()
	w.run()
	assert.Equal(t, 2, looks(), "it is long over")
	now := metav1.NewTime(w.clock.Now())
	w.stored.DeletionTimestamp = &now
	w.run()
	assert.Equal(t, 3, looks(), "whatever is left would keep it from going")
}

// A creation that got no answer may land when the object is gone again. So it is
// waited out before it is sent once more, and nothing is written meanwhile.
func TestACreationWithoutAnAnswerIsWaitedOutBeforeItIsRepeated(t *testing.T) {
	for kind, waits := range map[api.ChangeType]bool{api.Create: true, api.Patch: false, api.Update: false, api.Delete: false} {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t, "a")
			w.stored.Spec.Changes[0].Type = kind
			w.replies["do a"] = []reply{{err: errLost}}
			w.run()
			assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase, w.transcript())
			looks, written := 0, 0
			for _, line := range w.lines {
				if line == "observe a: not applied" {
					looks++
				}
				if strings.HasPrefix(line, "checkpoint ") {
					written++
				}
			}
			if !waits {
				assert.Equal(t, 1, looks, w.transcript())
				return
			}
			assert.Equal(t, 1+int(testPolicy.SettleTime/pollInterval), looks, w.transcript())
			assert.Less(t, written, 12, w.transcript())
		})
	}
}

// A request to save a before-image that got no answer may land after the end.
func TestWhatALateRequestMayHaveLeftIsLookedForAfterTheEnd(t *testing.T) {
	w := newWorld(t, "a")
	w.replies["save"] = []reply{{err: errLost}}
	w.run()
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase, w.transcript())
	assert.Equal(t, 2, strings.Count(w.transcript(), "discard the before-images"), w.transcript())
	assert.Zero(t, w.engine.memories.Len())
}

// A clock that is set back must not make the wait longer than it is for any request.
func TestADoubtFromAheadOfTheClockIsWaitedOutFromNowOn(t *testing.T) {
	w := newWorld(t, "a")
	s := w.engine.saga(w.stored)
	s.memory.Doubt()
	w.clock.SetTime(w.clock.Now().Add(-time.Hour))
	assert.Equal(t, testPolicy.SettleTime, s.doubtTime())
	w.clock.Step(testPolicy.SettleTime)
	assert.LessOrEqual(t, s.doubtTime(), time.Duration(0))
}

// A Transaction that has changed nothing needs none of them.
func TestWhatALateRequestMayHaveLeftOfAFailureIsNotKept(t *testing.T) {
	w := newWorld(t, "a")
	w.replies["save"] = []reply{{err: errLost}, {err: errclass.New(errclass.Terminal, errclass.AlreadyExists, "save", "ConfigMap txn-rollback", "it is another client's")}}
	w.run()
	assert.Equal(t, api.PhaseFailed, w.stored.Status.Phase, w.transcript())
	assert.Equal(t, 2, strings.Count(w.transcript(), "discard the before-images"), w.transcript())
	assert.NotContains(t, w.transcript(), "keep the before-images")
}

// The record of a change that was made is lost, and a stale answer says that it was
// not: that it is refused now proves nothing.
func TestARefusalAfterAChangeWasMadeDoesNotProveThatItWasNot(t *testing.T) {
	w := newWorld(t, "a")
	made := ""
	w.after["do a"] = func() {
		made, w.targets["a"] = w.targets["a"], w.images["a"] // as a server that is behind shows it
		w.replies["checkpoint"] = []reply{{err: errLost}}
	}
	w.after["observe a: not applied"] = func() { w.targets["a"] = made }
	w.run()
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase, w.transcript())
	assert.Equal(t, 1, w.dos["a"], w.transcript())
}

// The record of a compensation is lost. Anyone who made it knows that it was made, and
// leaves alone what happens to the object afterwards, even when another has gone on with
// the Transaction meanwhile; another process has to look. So has anyone who made it after
// another has gone on, if what the item creates may be re-created by that one.
func TestACompensationIsNotRepeatedByWhoeverMadeIt(t *testing.T) {
	for name, c := range map[string]struct {
		kind      api.ChangeType
		meanwhile func(w *world)
		undone    int
	}{
		"it goes on itself":                     {api.Patch, func(*world) {}, 1},
		"it is restarted":                       {api.Patch, (*world).restart, 2},
		"another takes over":                    {api.Patch, (*world).overtake, 1},
		"another takes over what it is to make": {api.Create, (*world).overtake, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "a", "b")
			w.stored.Spec.Changes[0].Type = c.kind
			w.refuse["do b"] = errRefused
			w.after["undo a"] = func() { w.replies["checkpoint"] = []reply{{err: errLost}} }
			w.after["-- tries again after an error: ServerUnavailable"] = func() { c.meanwhile(w) }
			w.run()
			assert.Equal(t, api.PhaseRolledBack, w.stored.Status.Phase, w.transcript())
			assert.Equal(t, c.undone, strings.Count(w.transcript(), "\nundo a"), w.transcript())
		})
	}
}

// A process takes a rollback over while the one before it still lives, and that one goes
// on: it may be at an end with a change by the time the other has the locks. What others
// have written to the object since is not the change.
func TestWhoeverTakesARollbackOverAsksOnceMoreBeforeItRollsBack(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.refuse["do b"] = errRefused
	w.after["checkpoint 5 RollingBack"] = func() { w.replies["keep the locks"] = []reply{{crash: true}} }
	w.after["-- the process ends"] = func() {
		w.after["keep the locks"] = func() {
			w.targets["a"] = wrote("a") // as another client has it, after it was rolled back
			w.overtake()
			plan.SetItemState(&w.stored.Status.Items[0], api.ItemRolledBack)
		}
	}
	w.run()
	assert.Equal(t, api.PhaseRolledBack, w.stored.Status.Phase, w.transcript())
	assert.NotContains(t, w.transcript(), "undo a", w.transcript())
}

// What a rollback has re-created is on record before it goes on: anyone who goes on does
// not make it once more when another client deletes it.
func TestWhatWasMadeAnewIsOnRecordBeforeTheCompensationIsComplete(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.stored.Spec.Changes[0].Type = api.Delete
	w.refuse["do b"] = errRefused
	w.anew = map[string]types.UID{"a": "u-2"}
	w.replies["undo a"] = []reply{{err: errLost}, {err: errLost}}
	var recorded api.Item
	w.after["undo a: fails"] = func() {
		w.after["checkpoint"] = func() { recorded = w.stored.Status.Items[0] }
	}
	w.run()
	assert.Equal(t, api.PhaseRolledBack, w.stored.Status.Phase, w.transcript())
	assert.Equal(t, types.UID("u-2"), recorded.RecreatedUID, w.transcript())
	assert.Equal(t, api.ItemRollingBack, recorded.State, w.transcript())
}

// Whether that record was stored or not, and whether its answer came, the rollback goes on.
func TestTheRecordOfWhatWasMadeAnewMayBeLost(t *testing.T) {
	for name, lost := range map[string]reply{
		"it is not stored":              {err: errLost},
		"it is, and the answer is lost": {err: errLost, lost: true},
		"the process dies after it":     {crash: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "a", "b")
			w.stored.Spec.Changes[0].Type = api.Delete
			w.refuse["do b"] = errRefused
			w.anew = map[string]types.UID{"a": "u-2"}
			w.replies["undo a"] = []reply{{err: errLost}, {err: errLost}}
			w.after["undo a: fails"] = func() { w.replies["checkpoint"] = []reply{lost} }
			w.run()
			assert.Equal(t, api.PhaseRolledBack, w.stored.Status.Phase, w.transcript())
			assert.Equal(t, types.UID("u-2"), w.stored.Status.Items[0].RecreatedUID, w.transcript())
			assert.Equal(t, 1, w.undos["a"], w.transcript())
		})
	}
}

// A person writes the spec while that record is written, so that it is refused, and deletes the object:
// it is on record before anything else is sent, so that it is not created once more.
func TestWhatWasMadeAnewIsOnRecordAfterSomeoneElseHasWritten(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.stored.Spec.Changes[0].Type = api.Delete
	w.refuse["do b"] = errRefused
	w.anew = map[string]types.UID{"a": "u-2"}
	w.replies["undo a"] = []reply{{err: errLost}, {err: errLost}}
	w.after["undo a: fails"] = func() {
		delete(w.after, "undo a: fails")
		w.stored.ResourceVersion += "0"
	}
	var recorded api.Item
	w.after["checkpoint 6 "] = func() { recorded = w.stored.Status.Items[0] }
	w.run()
	assert.Equal(t, api.PhaseRolledBack, w.stored.Status.Phase, w.transcript())
	assert.Contains(t, w.transcript(), "checkpoint: fails, StaleVersion", "the record was lost")
	assert.Equal(t, types.UID("u-2"), recorded.RecreatedUID, w.transcript())
	assert.Equal(t, api.ItemRollingBack, recorded.State, w.transcript())
}

// What was created again is on record also where it was refused for good after that, and what was sent before may
// still land: a process that goes on meanwhile would create it once more otherwise, although someone has deleted it.
func TestWhatWasMadeAnewIsOnRecordAfterARefusal(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.stored.Spec.Changes[0].Type = api.Delete
	refuseB(w)
	w.replies["undo a"] = []reply{{err: errLost}, {err: errDrifted}}
	w.after["-- tries again"] = func() { w.anew = map[string]types.UID{"a": "u-2"} }
	var recorded types.UID
	w.after["checkpoint 7 "] = func() { recorded = w.stored.Status.Items[0].RecreatedUID }
	w.run()
	assert.Contains(t, w.transcript(), "undo a: fails, Drifted", w.transcript())
	assert.Equal(t, types.UID("u-2"), recorded, w.transcript())
	oracle(t, w)
}

// overtake lets another process write the Transaction.
func (w *world) overtake() {
	w.stored.Status.Version++
	w.stored.ResourceVersion += "0"
}

// Two processes that prepare one Transaction: the one that comes later writes it first,
// so that the other does not go on under locks that this one gives back.
func TestAProcessThatMeetsATransactionInPreparationTakesItOver(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.locks["b"] = "another Transaction"
	w.after["-- looks again in 1s"] = func() {
		w.restart()
		delete(w.locks, "b")
	}
	w.run()
	assert.Contains(t, w.transcript(), "-- looks again in 1s\ncheckpoint 3 Preparing: a Pending, b Pending [waits: lock")
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase, w.transcript())
}

// A process is late with a Transaction that another has let go and whose deletion is
// through: what it has made is nobody else's to find.
func TestWhatWasMadeForATransactionThatVanishedIsLetGo(t *testing.T) {
	w := newWorld(t, "a")
	name := types.NamespacedName{Namespace: "shop", Name: "deploy"}
	w.after["save a"] = func() {
		w.say("-- another process lets it go")
		w.gone, w.stored = w.stored, nil
	}
	result := w.engine.Run(t.Context(), w.stored.DeepCopy())
	require.Error(t, result.Err)
	assert.Equal(t, testPolicy.SettleTime, w.engine.Vanished(t.Context(), name).After, "one answer may be of a server that is behind")
	assert.NotEmpty(t, w.locks)
	w.clock.Step(testPolicy.SettleTime)
	assert.Zero(t, w.engine.Vanished(t.Context(), name))
	assert.Empty(t, w.locks)
	assert.Empty(t, w.images)
	assert.Zero(t, w.engine.memories.Len())
	assert.Zero(t, w.engine.Vanished(t.Context(), name), "there is nothing to let go of any more")
}

// Another client has taken the finalizer off while this process waited, and deleted it.
func TestWhatWaitedWhenItVanishedIsLetGo(t *testing.T) {
	for what, set := range map[string]func(w *world){
		"for a change to be ready": func(w *world) { w.waitsFor("a", "1h") },
		"for its turn":             func(w *world) { w.stored.Spec.ChangesPerMinute = ptr.To(int32(1)) },
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, "a", "b")
			set(w)
			result, _ := w.once()
			require.Positive(t, result.After, w.transcript())
			w.stored = nil
			name := types.NamespacedName{Namespace: "shop", Name: "deploy"}
			assert.Equal(t, testPolicy.SettleTime, w.engine.Vanished(t.Context(), name).After)
			assert.NotEmpty(t, w.locks)
			w.clock.Step(testPolicy.SettleTime)
			assert.Zero(t, w.engine.Vanished(t.Context(), name))
			assert.Empty(t, w.locks, w.transcript())
			assert.Empty(t, w.images, w.transcript())
			assert.Zero(t, w.engine.memories.Len())
		})
	}
}

func TestATransactionThatIsThereAgainHasNotVanished(t *testing.T) {
	w := newWorld(t, "a")
	w.replies["save"] = []reply{{err: errBusy}}
	_, _ = w.once()
	name := types.NamespacedName{Namespace: "shop", Name: "deploy"}
	assert.Positive(t, w.engine.Vanished(t.Context(), name).After)
	w.replies["save"] = []reply{{err: errBusy}}
	_, _ = w.once()
	w.clock.Step(testPolicy.SettleTime)
	assert.Equal(t, testPolicy.SettleTime, w.engine.Vanished(t.Context(), name).After)
	assert.NotEmpty(t, w.locks)
}

// A process whose first answer is of before another one began with the Transaction takes
// it for new. What that one has sent may land after the end all the same.
func TestATransactionThatWasTakenForNewIsLookedBackAt(t *testing.T) {
	w := newWorld(t, "a")
	stale := w.stored.DeepCopy()
	w.replies["lock"] = []reply{{crash: true}}
	_, crash := w.once()
	require.True(t, crash)
	w.restart()
	require.Error(t, w.engine.Run(t.Context(), stale).Err)
	w.run()
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase, w.transcript())
	assert.Equal(t, 2, strings.Count(w.transcript(), "discard the before-images"), w.transcript())
}

// A Transaction that was given up in between, and comes back, is met as that of another: its
// open intent is looked at, although this process has recorded it and sent nothing.
func TestWhatIsGivenUpIsForgotten(t *testing.T) {
	w := newWorld(t, "a", "b")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.after["checkpoint 3"] = cancel
	w.engine.Run(ctx, w.stored.DeepCopy())
	require.Equal(t, api.ItemCommitting, w.stored.Status.Items[1].State, w.transcript())
	require.NotZero(t, w.engine.memories.Len())

	w.engine.Forget(func(name types.NamespacedName) bool { return name.Name == "another" })
	assert.NotZero(t, w.engine.memories.Len(), "that is of others")
	assert.Zero(t, w.forgotten)
	w.engine.Forget(func(name types.NamespacedName) bool { return name.String() == "shop/deploy" })
	assert.Zero(t, w.engine.memories.Len())
	assert.Contains(t, w.transcript(), "forget the locks")
	assert.Equal(t, 1, w.forgotten, "nor does the planner know of it any more")

	w.run()
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase, w.transcript())
	assert.Equal(t, map[string]int{"a": 1, "b": 1}, w.dos, w.transcript())
	assert.Contains(t, w.transcript(), "observe b: not applied")

	// What has ended lately is looked at again, too: another may have been late with it.
	looks := strings.Count(w.transcript(), "release the locks")
	w.run()
	assert.Equal(t, looks, strings.Count(w.transcript(), "release the locks"))
	w.engine.Forget(func(types.NamespacedName) bool { return true })
	w.run()
	assert.Equal(t, looks+1, strings.Count(w.transcript(), "release the locks"))
}

// Another process may have given the locks back before a status write that gets no answer.
func TestLocksAreLookedAtAfterAStatusWriteThatGotNoAnswer(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.run()
	require.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
	assert.Zero(t, w.distrusted, "no other process has had it")

	w = newWorld(t, "a", "b")
	w.after["save a, b"] = func() { w.replies["checkpoint"] = []reply{{err: errLost}} }
	w.run()
	require.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
	assert.Equal(t, 1, w.distrusted, w.transcript())
}
