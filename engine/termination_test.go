package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// Whatever happens for a while, in the end the Transaction says what is so, and
// once faults stop it gets there in a bounded number of requests.
func TestOnceFaultsStopEveryTransactionEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "items")
		names := []string{"a", "b", "c", "d"}[:n]
		if n > 2 && rapid.Bool().Draw(t, "the third changes the object of the first") {
			names[2], names[0] = "a2", "a1"
		}
		w := newWorld(t, names...).wide(rapid.SampledFrom([]int{1, 2, 100}).Draw(t, "window"))
		if refused := rapid.IntRange(-1, n-1).Draw(t, "refused"); refused >= 0 {
			w.refuse["do "+names[refused]] = errRefused
		}
		for i, name := range names {
			if i > 0 && rapid.Bool().Draw(t, name+" depends on another") {
				w.refers[name] = []string{names[rapid.IntRange(0, i-1).Draw(t, "which")]}
			}
		}
		faults := rapid.IntRange(0, 40).Draw(t, "calls with faults")
		w.nth = func(call int, _ string) reply {
			if call > faults {
				return reply{}
			}
			return rapid.SampledFrom([]reply{
				{}, {}, {}, {err: errLost}, {err: errLost, lost: true}, {crash: true}, {err: errBusy},
			}).Draw(t, "reply")
		}
		if victim := rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "somebody writes"); victim != "" {
			if _, ok := w.targets[victim]; ok {
				w.after[fmt.Sprintf("checkpoint %d ", rapid.IntRange(3, 8).Draw(t, "when"))] = func() { w.targets[victim] = "theirs" }
			}
		}
		w.run()
		if err := checkOrder(w.lines); err != nil {
			t.Fatalf("%v\n%s", err, w.transcript())
		}
		if w.stored.Status.Phase == api.PhaseCommitted || w.stored.Status.Phase == api.PhaseRolledBack || w.stored.Status.Phase == api.PhaseFailed {
			honest(t, w)
		} else {
			t.Fatalf("it rests in phase %q:\n%s", w.stored.Status.Phase, w.transcript())
		}
		// Each item costs at most its intent, its change, its compensation and what is
		// looked at around them; a settle time is looked at each second.
		if most := faults + 60 + 16*n; w.calls > most {
			t.Fatalf("%d requests, of which %d could fail, for %d items:\n%s", w.calls, faults, n, w.transcript())
		}
	})
}

// honest is the oracle for worlds in which others write too: theirs stays.
func honest(t *rapid.T, w *world) {
	oracle(t, w)
	for _, item := range w.stored.Status.Items {
		now := w.targets[item.Target.Name]
		switch {
		case w.stored.Status.Phase == api.PhaseRolledBack && now != "as it was" && now != "theirs":
			t.Fatalf("RolledBack, and %s is %q:\n%s", item.Target.Name, now, w.transcript())
		case item.State == api.ItemUnresolved && item.Message == "":
			t.Fatalf("item %s is unresolved and does not say why", item.Name)
		}
	}
}

// renewals tells when the locks have been kept.
type renewals struct {
	Locks
	kept chan struct{}
}

func (r renewals) Keep(ctx context.Context, t *api.Transaction, lost func()) error {
	err := r.Locks.Keep(ctx, t, lost)
	r.kept <- struct{}{}
	return err
}

// slowPlanner works before it prepares.
type slowPlanner struct {
	Planner
	work func()
}

func (p slowPlanner) Prepare(ctx context.Context, t *api.Transaction, items []int, lost func()) (Prepared, error) {
	p.work()
	return p.Planner.Prepare(ctx, t, items, lost)
}

// An error that does not heal ends a rollback for good.
func TestARollbackThatCannotSucceedStops(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.refuse["do b"], w.refuse["undo a"] = errRefused, errRefused
	w.run()
	assert.Equal(t, api.PhaseFailed, w.stored.Status.Phase)
	assert.Equal(t, testPolicy.Recoveries, w.stored.Status.Recoveries)
	result, _ := w.once()
	assert.Equal(t, Result{}, result, "nothing is left to do")
}

// While the targets are read, the locks are renewed as often as they need it.
func TestLocksAreKeptWhilePreparingTakesLong(t *testing.T) {
	w := newWorld(t, "a")
	w.stored.Spec.LockTimeout = ptr.To(api.Duration("40s"))
	kept := make(chan struct{})
	ports := w.engine.Ports
	ports.Locks = renewals{Locks: ports.Locks, kept: kept}
	ports.Planner = slowPlanner{Planner: ports.Planner, work: func() {
		for range 3 {
			w.clock.Step(10 * time.Second)
			<-kept
		}
	}}
	w.engine = New(ports, w.clock, testPolicy)
	txn := fixture.Transaction()
	txn.Finalizers = []string{api.Finalizer}
	txn.Status = api.TransactionStatus{Phase: api.PhasePreparing, ObservedGeneration: 1, StartTime: ptr.To(metav1.NewTime(fixture.Start))}
	txn.Status.Items = []api.Item{{Name: w.stored.Spec.Changes[0].Name, Target: w.stored.Spec.Changes[0].Target, State: api.ItemPending}}
	txn.Spec, txn.ResourceVersion = w.stored.Spec, w.stored.ResourceVersion
	plan.Summarize(txn, w.clock.Now())
	s := w.engine.saga(txn)
	w.stored.Status, w.stored.Finalizers = txn.Status, txn.Finalizers
	require.NoError(t, preparing{s}.prepare(t.Context()))
	assert.Equal(t, api.PhaseCommitting, w.stored.Status.Phase)
	w.clock.Step(time.Hour) // nobody renews any more, or it would wait for ever to tell: goleak sees that
}

func TestTheSettleTimeIsCountedFromTheFirstLook(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.replies["do b"] = []reply{{err: errLost}, {err: errRefused}}
	w.run()
	assert.Equal(t, api.PhaseRolledBack, w.stored.Status.Phase)
	looks, turned := 0, false
	for _, line := range w.lines {
		turned = turned || strings.Contains(line, " RollingBack: ")
		if turned && line == "observe b: not applied" {
			looks++
		}
	}
	// One when the rollback begins, one for each second of the settle time, and one more
	// because the last answer may be out of date.
	assert.Equal(t, 2+int(testPolicy.SettleTime/pollInterval), looks, w.transcript())
	assert.Zero(t, w.engine.memories.Len(), "nothing is remembered of what has ended")
}

func TestAnErrorThatIsNotOursIsRetriedAndNamed(t *testing.T) {
	w := newWorld(t, "a")
	w.replies["save"] = []reply{{err: fmt.Errorf("disk full")}}
	w.run()
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase)
	assert.Contains(t, w.lines, "save: fails, "+errclass.ServerUnavailable)
}

// A process that has taken a Transaction over cannot know which creations the one before
// it has sent. Rolled back too early, what they make would outlive the rollback.
func TestWhatAnotherProcessMayStillCreateIsWaitedForBeforeItIsRolledBack(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.stored.Spec.Changes[0].Type = api.Create
	w.replies["do a"] = []reply{{err: errLost, lost: true, crash: true}}
	w.refuse["do b"] = errRefused
	w.run()
	require.Equal(t, api.PhaseRolledBack, w.stored.Status.Phase, w.transcript())
	var waited time.Duration
	for _, line := range w.lines {
		if after, looks := strings.CutPrefix(line, "-- looks again in "); looks {
			wait, err := time.ParseDuration(after)
			require.NoError(t, err)
			waited += wait
		}
		if strings.HasPrefix(line, "undo a") {
			break
		}
	}
	assert.GreaterOrEqual(t, waited, testPolicy.SettleTime, w.transcript())
}

// A rollback takes everything from the status and the before-images, since the spec may
// have been cut short.
func TestASpecThatWasCutShortIsRolledBack(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.after["do b"] = func() {
		w.stored.Spec.Changes = w.stored.Spec.Changes[:1]
		w.stored.Generation++
		w.bump()
	}
	w.run()
	assert.Equal(t, api.PhaseRolledBack, w.stored.Status.Phase, w.transcript())
}

// A Transaction in phase Prepared is begun from there: a janusd of an earlier version records that before it
// records the first intents.
func TestWhatIsPreparedIsBegun(t *testing.T) {
	w := newWorld(t, "a", "b")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.stored.Spec.Timeout = ptr.To(api.Duration("5s"))
	w.after["save"] = func() { w.clock.Step(6 * time.Second) }
	w.after["checkpoint 2"] = cancel
	w.engine.Run(ctx, w.stored.DeepCopy())
	require.Equal(t, api.PhasePrepared, phaseOf(w), w.transcript())
	w.stored.Spec.Timeout = nil
	w.restart()
	w.run()
	assert.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
	assert.Contains(t, w.transcript(), "Committing: a Committing, b Prepared\nkeep the locks\ndo a", w.transcript())
	assert.Equal(t, map[string]int{"a": 1, "b": 1}, w.dos, w.transcript())
}
