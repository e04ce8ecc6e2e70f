package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	api "janus.io/janus/api/v1alpha1"
)

// recorded is an event as the Recorder gave it to the recorder.
type recorded struct{ kind, reason, action, note string }

type recorder struct {
	events []recorded
	// parts are those of the Transaction that events were about.
	parts []corev1.ObjectReference
}

func (r *recorder) Eventf(regarding, _ runtime.Object, kind, reason, action, note string, args ...any) {
	if part, ok := regarding.(*corev1.ObjectReference); ok {
		r.parts = append(r.parts, *part)
	}
	r.events = append(r.events, recorded{kind, reason, action, fmt.Sprintf(note, args...)})
}

func newRecorder(t *testing.T) (*Recorder, *recorder, *observer.ObservedLogs) {
	t.Helper()
	w, r, logs, _ := newTimedRecorder(t)
	return w, r, logs
}

func newTimedRecorder(t *testing.T) (*Recorder, *recorder, *observer.ObservedLogs, *clocktesting.FakeClock) {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry(), clock.RealClock{})
	require.NoError(t, err)
	core, logs := observer.New(zapcore.DebugLevel)
	r := &recorder{}
	fake := clocktesting.NewFakeClock(time.Unix(0, 0))
	return NewRecorder(r, metrics, fake, zap.New(core)), r, logs, fake
}

// at is a Transaction at a checkpoint, with the conditions that an event is made of.
func at(phase api.Phase, reason, message string, waiting ...string) *api.Transaction {
	t := &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deploy", UID: "7f3a"}}
	t.Status.Phase, t.Status.Progress = phase, "1/2"
	reconciling := metav1.Condition{Type: api.ConditionReconciling, Status: metav1.ConditionTrue, Reason: string(phase), Message: message}
	if len(waiting) > 0 {
		reconciling.Reason, reconciling.Message = waiting[0], waiting[1]
	}
	t.Status.Conditions = []metav1.Condition{{Type: api.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message}, reconciling}
	return t
}

func TestEventsAreOnePerPhaseChangeAndPerThingWaitedFor(t *testing.T) {
	t.Parallel()
	w, r, _ := newRecorder(t)
	fresh := at("", "", "")
	preparing := at(api.PhasePreparing, "Preparing", "taking the locks")
	held := at(api.PhasePreparing, "LockHeld", "held by x", "LockHeld", "held by x")
	other := at(api.PhasePreparing, "LockHeld", "held by y", "LockHeld", "held by y")
	prepared := at(api.PhasePrepared, "Prepared", "ready")
	back := at(api.PhaseRollingBack, "Rejected", "rolling back: denied")
	failed := at(api.PhaseFailed, "RollbackIncomplete", "not rolled back: item a")
	for _, step := range [][2]*api.Transaction{
		{fresh, preparing}, {preparing, held}, {held, held}, {held, other}, {other, preparing}, {preparing, prepared}, {prepared, back}, {back, back}, {back, failed},
	} {
		w.Checkpointed(step[0], step[1])
	}
	assert.Equal(t, []recorded{
		{"Normal", "LockHeld", "Transact", "held by x"},
		{"Normal", "LockHeld", "Transact", "held by y"},
		{"Warning", "RollingBack", "Transact", "rolling back: denied"},
		{"Warning", "Failed", "Transact", "not rolled back: item a"},
	}, r.events)
}

func TestAPhaseThatLastsIsAnEvent(t *testing.T) {
	t.Parallel()
	w, r, _, clock := newTimedRecorder(t)
	preparing, committing := at(api.PhasePreparing, "Preparing", "taking the locks"), at(api.PhaseCommitting, "Committing", "making changes")
	w.Checkpointed(at("", "", ""), preparing)
	clock.Step(lastingPhase - time.Millisecond)
	w.Checkpointed(preparing, at(api.PhasePrepared, "Prepared", "ready"))
	w.Checkpointed(at(api.PhasePrepared, "Prepared", "ready"), committing)
	clock.Step(lastingPhase - time.Millisecond)
	assert.Empty(t, r.events)
	w.Checkpointed(committing, committing)
	clock.Step(time.Millisecond)
	assert.Equal(t, []recorded{{"Normal", "Committing", "Transact", "making changes"}}, r.events)
	assert.Equal(t, []corev1.ObjectReference{{APIVersion: "backup.janus.io/v1alpha1", Kind: "Transaction", Namespace: "shop", Name: "deploy", UID: "7f3a"}}, r.parts)
	clock.Step(time.Hour)
	w.Checkpointed(committing, at(api.PhaseCommitted, "Committed", "done"))
	clock.Step(time.Hour)
	assert.Equal(t, recorded{"Normal", "Committed", "Transact", "done"}, r.events[1])
	assert.Len(t, r.events, 2)
}

func TestNothingIsToldOfAPhaseOnceTheTransactionIsAbandoned(t *testing.T) {
	t.Parallel()
	w, r, _, clock := newTimedRecorder(t)
	preparing := at(api.PhasePreparing, "Preparing", "taking the locks")
	w.Checkpointed(at("", "", ""), preparing)
	w.Abandoned(preparing)
	clock.Step(time.Hour)
	require.Len(t, r.events, 1)
	assert.Equal(t, "Cancelled", r.events[0].reason)
}

func TestAnItemThatCannotBeRolledBackHasAnEventOfItsOwn(t *testing.T) {
	t.Parallel()
	w, r, _ := newRecorder(t)
	before, after := at(api.PhaseRollingBack, "Rejected", "m"), at(api.PhaseRollingBack, "Rejected", "m")
	before.Status.Items = []api.Item{{Name: "a", State: api.ItemRollingBack}}
	after.Status.Items = []api.Item{{Name: "a", State: api.ItemUnresolved, Reason: "Drifted", Message: "field .data.v was written by kubectl"}}
	w.Checkpointed(before, after)
	w.Checkpointed(after, after)
	assert.Equal(t, []recorded{{"Warning", "Drifted", "RollBack", "item a: field .data.v was written by kubectl"}}, r.events)
}

func TestWhatThereIsToSayAboutAnItemIsAnEvent(t *testing.T) {
	t.Parallel()
	w, r, _ := newRecorder(t)
	preparing, prepared := at(api.PhasePreparing, "Preparing", "m"), at(api.PhasePreparing, "Preparing", "m")
	preparing.Status.Items = []api.Item{{Name: "a"}, {Name: "b"}}
	prepared.Status.Items = []api.Item{{Name: "a", State: api.ItemPrepared, Warnings: []string{"its Pods go", "last is best"}}, {Name: "b", State: api.ItemPrepared, Warnings: []string{"x"}}}
	back := at(api.PhasePreparing, "Preparing", "m")
	back.Status.Items = []api.Item{
		{Name: "a", State: api.ItemRolledBack, Warnings: prepared.Status.Items[0].Warnings, Reason: "Reclaimed", Message: "rolled back; left alone: .spec.replicas"},
		{Name: "b", State: api.ItemCommitted, Warnings: prepared.Status.Items[1].Warnings, Reason: "ManagerStays", Message: "denied"},
	}
	w.Checkpointed(preparing, prepared)
	w.Checkpointed(prepared, back)
	w.Checkpointed(back, back)
	assert.Equal(t, []recorded{
		{"Warning", "HardToRollBack", "Prepare", "3 warnings (see status.items[].warnings): item a: its Pods go; item a: last is best; item b: x"},
		{"Warning", "Reclaimed", "RollBack", "item a: rolled back; left alone: .spec.replicas"},
		{"Warning", "ManagerStays", "HandOver", "item b: denied"},
	}, r.events)
}

// client-go tells of events that differ in nothing but their words once, with a count.
func TestEventsOfTwoItemsAtOneCheckpointAreAboutDifferentParts(t *testing.T) {
	t.Parallel()
	w, r, _ := newRecorder(t)
	before, after := at(api.PhaseRollingBack, "Rejected", "m"), at(api.PhaseRollingBack, "Rejected", "m")
	before.Status.Items = []api.Item{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	after.Status.Items = []api.Item{
		{Name: "a", State: api.ItemUnresolved, Reason: "Drifted", Message: "m"},
		{Name: "b", State: api.ItemUnresolved, Reason: "Drifted", Message: "m"},
		{Name: "c", State: api.ItemSkipped, Message: "m"},
	}
	after.ResourceVersion = "7"
	w.Checkpointed(before, after)
	about := func(item string) corev1.ObjectReference {
		return corev1.ObjectReference{
			APIVersion: "backup.janus.io/v1alpha1", Kind: "Transaction", Namespace: "shop", Name: "deploy",
			UID: "7f3a", ResourceVersion: "7", FieldPath: "status.items{" + item + "}",
		}
	}
	assert.Equal(t, []corev1.ObjectReference{about("a"), about("b"), about("c")}, r.parts)
}

func TestLettingGoOfARunningTransactionIsAnEvent(t *testing.T) {
	t.Parallel()
	w, r, _ := newRecorder(t)
	txn := at(api.PhaseCommitting, "Committing", "m")
	txn.Spec.Changes = make([]api.Change, 3)
	txn.Status.Items = []api.Item{
		{Name: "a", State: api.ItemCommitted, Committed: true},
		{Name: "b", State: api.ItemCommitting, Target: api.Target{Kind: "ConfigMap", Namespace: "shop", Name: "b"}},
		{Name: "c", State: api.ItemPrepared},
	}
	w.Abandoned(txn)
	assert.Equal(t, []recorded{{"Warning", "Cancelled", "Release",
		"deleted in phase Committing: its locks are released, and its changes stay as they are (1/3 in effect, and perhaps 1 more: items b (ConfigMap shop/b))"}}, r.events)
	w.Abandoned(at(api.PhaseCommitted, "Committed", "m"))
	assert.Len(t, r.events, 1, "that an ended one is deleted is no news")

	txn.Status.Items = txn.Status.Items[:1]
	for _, name := range []string{"b", "c", "d", "e", "f"} {
		txn.Status.Items = append(txn.Status.Items, api.Item{Name: name, State: api.ItemCommitting, Target: api.Target{Kind: "ConfigMap", Name: name}})
	}
	txn.Spec.Changes = make([]api.Change, 6)
	w.Abandoned(txn)
	assert.Contains(t, r.events[1].note, "(1/6 in effect, and perhaps 5 more: items b (ConfigMap b), c (ConfigMap c), d (ConfigMap d), and 2 others)")
}

// The API server refuses an event whose note is longer than 1024 bytes, and
// client-go drops what is refused.
func TestTheNoteOfAnEventFitsTheAPIServer(t *testing.T) {
	t.Parallel()
	w, r, _ := newRecorder(t)
	long := strings.Repeat("é", 1000)
	before, after := at(api.PhaseRollingBack, "Rejected", "m"), at(api.PhaseFailed, "Rejected", long)
	before.Status.Items = []api.Item{{Name: "a", State: api.ItemRollingBack}}
	after.Status.Items = []api.Item{{Name: "a", State: api.ItemUnresolved, Reason: "Drifted", Message: long}}
	w.Checkpointed(before, after)
	w.Checkpointed(at(api.PhasePreparing, "m", "m"), at(api.PhasePreparing, "LockHeld", "m", "LockHeld", long))
	require.Len(t, r.events, 3)
	for _, e := range r.events {
		assert.LessOrEqual(t, len(e.note), 1024, "%s", e.reason)
		assert.NotContains(t, e.note, "\uFFFD", "%s is cut between two characters", e.reason)
	}
}

func TestLogMessagesAreConstantAndFieldsSayTheRest(t *testing.T) {
	t.Parallel()
	w, _, logs := newRecorder(t)
	w.Checkpointed(at("", "", ""), at(api.PhasePreparing, "Preparing", "taking the locks"))
	w.Checkpointed(at(api.PhasePreparing, "Preparing", "m"), at(api.PhasePreparing, "LockHeld", "m", "LockHeld", "held by x"))
	w.Abandoned(at(api.PhasePreparing, "LockHeld", "m"))
	var messages []string
	for _, entry := range logs.All() {
		messages = append(messages, entry.Message)
		fields := entry.ContextMap()
		for _, key := range []string{"namespace", "name", "uid", "phase"} {
			assert.NotEmpty(t, fields[key], "%s of %q", key, entry.Message)
		}
		assert.Equal(t, "backup.janus.io/v1alpha1", fields["apiVersion"])
		assert.Equal(t, "Transaction", fields["kind"])
		for _, key := range []string{"resourceVersion", "generation"} {
			assert.Contains(t, fields, key, "of %q", entry.Message)
		}
	}
	assert.Equal(t, []string{"phase changed", "waiting", "abandoned"}, messages)
}
