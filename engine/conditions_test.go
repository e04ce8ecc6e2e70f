package engine

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// statuses are the last checkpoint of a scenario in a phase, as users see it, and
// what tools that wait make of it.
var statuses = []struct {
	file     string
	scenario string
	phase    api.Phase
	kstatus  status.Status
}{
	{"pending", "the API server is away while the spec is validated", api.PhasePending, status.InProgressStatus},
	{"preparing", "three changes are made", api.PhasePreparing, status.InProgressStatus},
	{"preparing-waiting-for-a-lock", "a lock is held and then free", api.PhasePreparing, status.InProgressStatus},
	{"prepared", "the timeout ends while before-images are saved", api.PhasePrepared, status.InProgressStatus},
	{"committing", "three changes are made", api.PhaseCommitting, status.InProgressStatus},
	{"committing-waiting-for-the-server", "the server is busy", api.PhaseCommitting, status.InProgressStatus},
	{"committed", "three changes are made", api.PhaseCommitted, status.CurrentStatus},
	{"rolling-back", "the last change is refused", api.PhaseRollingBack, status.InProgressStatus},
	{"rolling-back-settling", "the answer is lost and the change is refused when it is tried again", api.PhaseRollingBack, status.InProgressStatus},
	{"rolled-back", "the last change is refused", api.PhaseRolledBack, status.FailedStatus},
	{"failed-invalid", "the spec is refused", api.PhaseFailed, status.FailedStatus},
	{"failed-timeout", "a lock is held for too long", api.PhaseFailed, status.FailedStatus},
	{"failed-preparation", "the preparation is refused", api.PhaseFailed, status.FailedStatus},
	{"failed-rollback", "another client has written a field that is to be rolled back", api.PhaseFailed, status.FailedStatus},
	{"failed-recoveries", "a rollback fails for good", api.PhaseFailed, status.FailedStatus},
	{"failed-pre-flight", "two changes cannot be made", api.PhaseFailed, status.FailedStatus},
	{"planned", "a plan is made", api.PhasePlanned, status.CurrentStatus},
	{"planned-in-part", "a plan of two changes of one object", api.PhasePlanned, status.CurrentStatus},
	{"recovering", "a rollback fails for good", api.PhaseRollingBack, status.InProgressStatus},
}

func TestTheStatusInEachPhase(t *testing.T) {
	for _, s := range statuses {
		t.Run(s.file, func(t *testing.T) {
			txn := reachedIn(t, s.scenario, s.phase)
			text, err := yaml.Marshal(txn.Status)
			require.NoError(t, err)
			golden(t, "status/"+s.file+".yaml", text)
			assert.Equal(t, s.kstatus, kstatusOf(t, txn))
			for _, c := range txn.Status.Conditions {
				assert.Equal(t, txn.Generation, c.ObservedGeneration, "condition %s", c.Type)
			}
		})
	}
}

// reachedIn returns the last checkpoint of a scenario in a phase; of those in which it
// waits, if the scenario is about waiting.
func reachedIn(t *testing.T, scenario string, phase api.Phase) *api.Transaction {
	t.Helper()
	w := newWorld(t, "a", "b", "c")
	if scenario == "the API server is away while the spec is validated" {
		w.replies["validate"] = []reply{{err: errLost}}
	} else {
		all, i := slices.Concat(scenarios, preflights), 0
		for all[i].name != scenario {
			i++
		}
		w = newWorld(t, all[i].items...)
		all[i].set(w)
	}
	w.run()
	var last *api.Transaction
	for _, txn := range w.reached {
		if txn.Status.Phase == phase && (last == nil || plan.WaitingFor(last) == "" || plan.WaitingFor(txn) != "") {
			last = txn
		}
	}
	require.NotNil(t, last, "%s is never reached:\n%s", phase, w.transcript())
	return last
}

func kstatusOf(t *testing.T, txn *api.Transaction) status.Status {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(txn)
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(api.Kind)
	result, err := status.Compute(u)
	require.NoError(t, err)
	return result.Status
}

// The CRD gives a new Transaction this status, see api/v1alpha1.
func TestATransactionThatNoControllerHasSeenIsInProgress(t *testing.T) {
	txn := fixture.Transaction("a")
	assert.Equal(t, int64(-1), txn.Status.ObservedGeneration)
	assert.Equal(t, status.InProgressStatus, kstatusOf(t, txn))
}

// Every checkpoint of every scenario counts as running or ended rightly.
func TestToolsThatWaitAreNeverMisled(t *testing.T) {
	for _, s := range slices.Concat(scenarios, preflights) {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t, s.items...)
			s.set(w)
			w.run()
			for _, txn := range w.reached {
				if txn.DeletionTimestamp != nil {
					continue // Terminating, to kstatus
				}
				want := map[api.Phase]status.Status{
					api.PhaseCommitted: status.CurrentStatus, api.PhasePlanned: status.CurrentStatus, api.PhaseRolledBack: status.FailedStatus, api.PhaseFailed: status.FailedStatus,
				}[txn.Status.Phase]
				if want == "" {
					want = status.InProgressStatus
				}
				assert.Equal(t, want, kstatusOf(t, txn), "checkpoint %d, %s", txn.Status.Version, txn.Status.Phase)
			}
		})
	}
}

// Causes come from API servers, webhooks and names that people choose.
func TestMessagesAreBoundedAndPrintable(t *testing.T) {
	hostile := errclass.New(errclass.Terminal, errclass.Rejected, "patch", "ConfigMap shop/\x1b[31mx",
		"line one\nline two\x00 %s", strings.Repeat("é…", 5000)).WithHint(strings.Repeat("way out ", 500))
	for _, call := range []string{"validate", "save", "do b"} {
		for _, undo := range []bool{false, true} {
			w := newWorld(t, "a", "b")
			w.refuse[call] = hostile
			if undo {
				w.refuse["undo a"] = hostile
			}
			w.run() // the journal of the world checks every condition and item
			_, cause := plan.RecordedCause(&w.stored.Status)
			assert.Contains(t, cause, "ConfigMap shop/")
			assert.LessOrEqual(t, len(cause), errclass.MaxMessage)
		}
	}
}

func TestWaitingIsWrittenOnceAndNotWithEachAttempt(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.locks["b"] = "another Transaction"
	var waits []time.Duration
	for range 60 {
		result, _ := w.once()
		require.NoError(t, result.Err)
		waits = append(waits, result.After)
		w.clock.Step(result.After)
	}
	assert.Equal(t, pollInterval, waits[8])
	assert.True(t, slices.IsSorted(waits), "%v", waits)
	assert.Equal(t, maxPollInterval, waits[59])
	assert.Equal(t, int64(2), w.stored.Status.Version, w.transcript())
	w.locks["b"] = "a third Transaction"
	_, _ = w.once()
	assert.Equal(t, int64(3), w.stored.Status.Version, "another holder is news")
	locked := meta.FindStatusCondition(w.stored.Status.Conditions, api.ConditionLocked)
	assert.Equal(t, errclass.LockHeld, locked.Reason)
	assert.Contains(t, locked.Message, "a third Transaction")
}

// An outcome that is not known may be told in other words each time.
func TestAServerThatIsAwayIsWrittenOnce(t *testing.T) {
	w := newWorld(t, "a")
	w.nth = func(n int, who string) reply {
		if who == "save" && n < 40 {
			return reply{err: errclass.New(errclass.Unknown, errclass.ServerUnavailable, "read", "", "attempt %d", n)}
		}
		return reply{}
	}
	w.run()
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase)
	waits := 0
	for _, line := range w.lines {
		if strings.Contains(line, "[waits: ") {
			waits++
		}
	}
	assert.Equal(t, 1, waits, w.transcript())
}

func TestATransitionTimeIsThatOfTheTransition(t *testing.T) {
	w := newWorld(t, "a")
	w.after["do a"] = func() { w.clock.Step(time.Minute) }
	w.run()
	at := func(txn *api.Transaction, kind string) metav1.Time {
		return meta.FindStatusCondition(txn.Status.Conditions, kind).LastTransitionTime
	}
	last := w.stored
	assert.Equal(t, fixture.Start, at(last, api.ConditionValidated).UTC())
	assert.Equal(t, fixture.Start.Add(time.Minute), at(last, api.ConditionReady).UTC())
	assert.Equal(t, fixture.Start, at(last, api.ConditionStalled).UTC())
	assert.Equal(t, "1m0s", last.Status.Duration)
}

func TestProgressCountsWhatIsInEffect(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.refuse["do c"] = errRefused
	w.run()
	var got []string
	for _, txn := range w.reached {
		if n := len(got); n == 0 || got[n-1] != txn.Status.Progress {
			got = append(got, txn.Status.Progress)
		}
	}
	assert.Equal(t, []string{"0/3", "1/3", "2/3", "1/3", "0/3"}, got)
	assert.Equal(t, "c", w.stored.Status.FailedItem)
}

// A context that is done does not cut a step short: the next process would have to
// find out what became of it.
func TestAStopLetsTheStepInHandFinish(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.after["do a"] = cancel
	result := w.engine.Run(ctx, w.stored.DeepCopy())
	assert.Equal(t, Result{}, result)
	assert.Equal(t, "checkpoint 3 Committing: a Committed, b Prepared, c Prepared", w.lines[len(w.lines)-1], "the step is recorded and no other begun")
	w.run()
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase)
	oracle(t, w)
}
