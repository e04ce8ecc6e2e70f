package controller_test

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/controller"
	"janus.io/janus/internal/otlp"
)

// collected are the traces that were exported.
type collected struct {
	mu     sync.Mutex
	traces [][]otlp.Span
}

func (c *collected) export(spans []otlp.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.traces = append(c.traces, spans)
}

// quiet is a Recorder that does nothing.
type quiet struct{}

func (quiet) Checkpointed(_, _ *api.Transaction) {}
func (quiet) Abandoned(*api.Transaction)         {}
func (quiet) Expired(*api.Transaction, bool)     {}

// value returns an attribute of a span.
func value(s otlp.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value
		}
	}
	return ""
}

const uid = "5d15457b-c584-4976-86b9-5ca639a048e5"

// stored is a Transaction with two items, as it is in a phase.
func stored(phase api.Phase, states ...api.ItemState) *api.Transaction {
	t := &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deploy", UID: uid}}
	t.Status.Phase = phase
	start := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	t.Status.StartTime = &start
	if phase.Terminal() {
		end := metav1.NewTime(start.Add(9 * time.Second))
		t.Status.CompletionTime = &end
	}
	t.Status.Conditions = []metav1.Condition{{Type: api.ConditionReady, Reason: "Rejected", Message: "the content is confidential"}}
	for i, state := range states {
		t.Status.Items = append(t.Status.Items, api.Item{
			Name: []string{"a", "b"}[i], Type: api.Patch, State: state, Reason: "Rejected", Message: "the content is confidential",
			Target: api.Target{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "key"},
		})
	}
	return t
}

func TestATraceHasASpanOfTheTransactionAndOneOfEachItem(t *testing.T) {
	t.Parallel()
	var got collected
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 5, 1, 12, 0, 1, 0, time.UTC))
	w := controller.NewTraces(got.export, now).Recorder(quiet{})
	w.Checkpointed(stored(api.PhasePrepared), stored(api.PhaseCommitting, api.ItemCommitting, api.ItemPrepared))
	w.Checkpointed(stored(api.PhaseCommitting), stored(api.PhaseRollingBack, api.ItemCommitted, api.ItemRejected))
	assert.Empty(t, got.traces, "it has not ended")
	w.Checkpointed(stored(api.PhaseRollingBack), stored(api.PhaseRolledBack, api.ItemRolledBack, api.ItemRejected))
	require.Len(t, got.traces, 1)
	spans := got.traces[0]
	require.Len(t, spans, 3)
	root := spans[0]
	assert.Equal(t, strings.ReplaceAll(uid, "-", ""), hex.EncodeToString(root.TraceID[:]), "the trace is found by the uid")
	assert.Equal(t, "Transaction", root.Name)
	assert.Equal(t, "RolledBack", value(root, "janus.transaction.phase"))
	assert.Equal(t, "Rejected", root.Failure)
	assert.Equal(t, 9*time.Second, root.End.Sub(root.Start))
	var phases []string
	for _, event := range root.Events {
		phases = append(phases, event.Name)
	}
	assert.Equal(t, []string{"Committing", "RollingBack", "RolledBack"}, phases)
	for i, span := range spans[1:] {
		assert.Equal(t, root.ID, span.Parent)
		assert.Equal(t, root.TraceID, span.TraceID)
		assert.Equal(t, "Patch Secret", span.Name)
		assert.Equal(t, "key", value(span, "janus.target.name"))
		assert.Equal(t, []string{"RolledBack", "Rejected"}[i], value(span, "janus.item.state"))
		assert.Equal(t, []string{"", "Rejected"}[i], span.Failure)
	}
	assert.NotEqual(t, spans[1].ID, spans[2].ID)
	text, err := json.Marshal(spans)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "confidential")
}

// A janusd that has seen nothing but the end tells the same, with the same ids.
func TestWhoeverEndsATransactionTellsOfTheWhole(t *testing.T) {
	t.Parallel()
	var one, other collected
	first := controller.NewTraces(one.export, clock.RealClock{}).Recorder(quiet{})
	first.Checkpointed(stored(api.PhasePrepared), stored(api.PhaseCommitting, api.ItemCommitting, api.ItemPrepared))
	first.Checkpointed(stored(api.PhaseCommitting), stored(api.PhaseCommitted, api.ItemCommitted, api.ItemSkipped))
	controller.NewTraces(other.export, clock.RealClock{}).Recorder(quiet{}).
		Checkpointed(stored(api.PhaseCommitting), stored(api.PhaseCommitted, api.ItemCommitted, api.ItemSkipped))
	require.Len(t, other.traces, 1)
	for i, span := range other.traces[0] {
		assert.Equal(t, one.traces[0][i].ID, span.ID)
		assert.Equal(t, one.traces[0][i].Start, span.Start)
		assert.Equal(t, one.traces[0][i].End, span.End)
		assert.Empty(t, span.Failure)
	}
	assert.Equal(t, "of the Transaction", value(other.traces[0][1], "janus.item.times"))
	assert.Equal(t, "not begun", value(other.traces[0][2], "janus.item.times"))
}

func TestARecoveryIsASpanBelowTheFirst(t *testing.T) {
	t.Parallel()
	var got collected
	w := controller.NewTraces(got.export, clock.RealClock{}).Recorder(quiet{})
	w.Checkpointed(stored(api.PhaseRollingBack), stored(api.PhaseFailed, api.ItemUnresolved, api.ItemRolledBack))
	again := stored(api.PhaseRolledBack, api.ItemRolledBack, api.ItemRolledBack)
	again.Status.Recoveries = 1
	w.Checkpointed(stored(api.PhaseRollingBack), again)
	require.Len(t, got.traces, 2)
	require.Len(t, got.traces[1], 1)
	recovery, root := got.traces[1][0], got.traces[0][0]
	assert.Equal(t, "Recovery", recovery.Name)
	assert.Equal(t, root.ID, recovery.Parent)
	assert.Equal(t, root.TraceID, recovery.TraceID)
	assert.NotEqual(t, root.ID, recovery.ID)
}

func TestATransactionThatIsLetGoIsToldOf(t *testing.T) {
	t.Parallel()
	var got collected
	w := controller.NewTraces(got.export, clock.RealClock{}).Recorder(quiet{})
	w.Abandoned(stored(api.PhaseCommitting, api.ItemCommitted, api.ItemPrepared))
	require.Len(t, got.traces, 1)
	assert.Equal(t, "Committing", value(got.traces[0][0], "janus.transaction.phase"))
	w.Abandoned(stored(api.PhaseCommitted, api.ItemCommitted, api.ItemCommitted))
	assert.Len(t, got.traces, 1, "it was told of when it ended")
}
