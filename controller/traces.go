package controller

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/internal/otlp"
	"janus.io/janus/internal/outcome"
)

// remembered is of how many Transactions it is known at what time something was done. One
// that another janusd goes on with is forgotten some time.
const remembered = 4096

// Traces make a trace of each Transaction that has ended: a span of it, and one of each
// item. Ids come from the uid and times from the status, so that anyone who ends a
// Transaction tells of the whole of it, whatever janusd began it. No content is told.
type Traces struct {
	export func([]otlp.Span)
	clock  clock.PassiveClock

	mu   sync.Mutex
	seen *lru.Cache // of types.UID to *sighting
}

// sighting is what this process has seen of a Transaction.
type sighting struct {
	phases []otlp.Event
	items  map[int]*stretch
}

// stretch is the time of the operations on an item.
type stretch struct{ start, end time.Time }

// NewTraces makes Traces that hand their spans to export.
func NewTraces(export func([]otlp.Span), clock clock.PassiveClock) *Traces {
	return &Traces{export: export, clock: clock, seen: lru.New(remembered)}
}

// of returns what was seen of a Transaction. The lock is held.
func (t *Traces) of(uid types.UID) *sighting {
	if known, ok := t.seen.Get(uid); ok {
		return known.(*sighting)
	}
	s := &sighting{items: map[int]*stretch{}}
	t.seen.Add(uid, s)
	return s
}

// Recorder tells of Transactions what it has seen, beside another Recorder.
func (t *Traces) Recorder(next engine.Recorder) engine.Recorder { return tracingRecorder{next, t} }

type tracingRecorder struct {
	engine.Recorder
	traces *Traces
}

// Checkpointed implements engine.Recorder.
func (w tracingRecorder) Checkpointed(before, after *api.Transaction) {
	w.Recorder.Checkpointed(before, after)
	w.traces.checkpointed(before, after)
}

// Abandoned implements engine.Recorder.
func (w tracingRecorder) Abandoned(txn *api.Transaction) {
	w.Recorder.Abandoned(txn)
	if !txn.Status.Phase.Terminal() {
		w.traces.ended(txn, w.traces.clock.Now())
	}
}

func (t *Traces) checkpointed(before, after *api.Transaction) {
	to := after.Status.Phase
	if before.Status.Phase == to {
		return
	}
	t.mu.Lock()
	s := t.of(after.UID)
	s.phases = append(s.phases, otlp.Event{Name: string(to), At: t.clock.Now()})
	t.mu.Unlock()
	if to.Terminal() && after.Status.CompletionTime != nil {
		t.ended(after, after.Status.CompletionTime.Time)
	}
}

// ended tells of a Transaction that has ended, or was let go.
func (t *Traces) ended(txn *api.Transaction, at time.Time) {
	t.mu.Lock()
	s := t.of(txn.UID)
	t.seen.Remove(txn.UID)
	t.mu.Unlock()
	for _, item := range s.items {
		if item.end.After(at) {
			at = item.end // The status has whole seconds.
		}
	}
	if txn.Status.Recoveries > 0 {
		t.export([]otlp.Span{recoverySpan(txn, s, at)})
		return
	}
	spans := []otlp.Span{transactionSpan(txn, s, at)}
	for i := range txn.Status.Items {
		spans = append(spans, itemSpan(txn, i, s.items[i], spans[0]))
	}
	t.export(spans)
}

// Changes notes when operations on targets began and ended.
func (t *Traces) Changes(next engine.Changes) engine.Changes { return tracedChanges{next, t} }

type tracedChanges struct {
	engine.Changes
	traces *Traces
}

// Do implements engine.Changes.
func (c tracedChanges) Do(ctx context.Context, in engine.Intent) error {
	defer c.traces.operation(in)()
	return c.Changes.Do(ctx, in)
}

// Undo implements engine.Changes.
func (c tracedChanges) Undo(ctx context.Context, in engine.Intent) (outcome.Undone, error) {
	defer c.traces.operation(in)()
	return c.Changes.Undo(ctx, in)
}

// operation notes that one begins, and returns what notes that it has ended.
func (t *Traces) operation(in engine.Intent) func() {
	uid, item := in.Transaction().UID, in.Index()
	note := func() {
		now := t.clock.Now()
		t.mu.Lock()
		defer t.mu.Unlock()
		s := t.of(uid)
		if s.items[item] == nil {
			s.items[item] = &stretch{start: now}
		}
		s.items[item].end = now
	}
	note()
	return note
}

func transactionSpan(txn *api.Transaction, s *sighting, end time.Time) otlp.Span {
	start := end
	if txn.Status.StartTime != nil {
		start = txn.Status.StartTime.Time
	}
	return otlp.Span{
		TraceID: otlp.TraceID(string(txn.UID)), ID: otlp.SpanID(string(txn.UID), "transaction"),
		Name: "Transaction", Start: start, End: end, Failure: failure(txn), Attributes: describe(txn), Events: s.phases,
	}
}

// recoverySpan is of another attempt to roll back, made after the end that was told of.
func recoverySpan(txn *api.Transaction, s *sighting, end time.Time) otlp.Span {
	span := transactionSpan(txn, s, end)
	span.Name, span.Parent = "Recovery", span.ID
	span.ID = otlp.SpanID(string(txn.UID), fmt.Sprintf("recovery %d", txn.Status.Recoveries))
	if began := txn.Status.RollbackStartTime; began != nil {
		span.Start = began.Time
	}
	return span
}

// failure is the reason why a Transaction did not end well. Its message may have content.
func failure(txn *api.Transaction) string {
	switch txn.Status.Phase {
	case api.PhaseCommitted, api.PhasePlanned:
		return ""
	}
	if reason, _ := readiness(txn); reason != "" {
		return reason
	}
	return string(orPending(txn.Status.Phase))
}

func describe(txn *api.Transaction) []otlp.Attribute {
	reason, _ := readiness(txn)
	return []otlp.Attribute{
		{Key: "k8s.namespace.name", Value: txn.Namespace},
		{Key: "janus.transaction.name", Value: txn.Name},
		{Key: "janus.transaction.uid", Value: string(txn.UID)},
		{Key: "janus.transaction.phase", Value: string(orPending(txn.Status.Phase))},
		{Key: "janus.transaction.reason", Value: reason},
		{Key: "janus.transaction.progress", Value: txn.Status.Progress},
		{Key: "janus.transaction.failed_item", Value: txn.Status.FailedItem},
		{Key: "janus.transaction.service_account", Value: txn.Spec.ServiceAccountName},
		{Key: "janus.transaction.recoveries", Value: strconv.Itoa(int(txn.Status.Recoveries))},
	}
}

// itemSpan is of the time from the first operation on the target to the last. Nothing is
// known of operations of another process: they took place while the Transaction did.
func itemSpan(txn *api.Transaction, index int, seen *stretch, parent otlp.Span) otlp.Span {
	item := &txn.Status.Items[index]
	span := otlp.Span{
		TraceID: parent.TraceID, ID: otlp.SpanID(string(txn.UID), fmt.Sprintf("item %d", index)), Parent: parent.ID,
		Name: string(item.Type) + " " + item.Target.Kind, Start: parent.End, End: parent.End,
		Attributes: []otlp.Attribute{
			{Key: "janus.item.name", Value: item.Name},
			{Key: "janus.item.index", Value: strconv.Itoa(index)},
			{Key: "janus.item.type", Value: string(item.Type)},
			{Key: "janus.item.state", Value: string(item.State)},
			{Key: "janus.item.reason", Value: item.Reason},
			{Key: "janus.target.api_version", Value: item.Target.APIVersion},
			{Key: "janus.target.kind", Value: item.Target.Kind},
			{Key: "janus.target.namespace", Value: item.Target.Namespace},
			{Key: "janus.target.name", Value: item.Target.Name},
		},
	}
	switch {
	case seen != nil:
		span.Start, span.End = seen.start, seen.end
		span.Attributes = append(span.Attributes, otlp.Attribute{Key: "janus.item.times", Value: "seen"})
	case item.State == api.ItemPending, item.State == api.ItemPrepared, item.State == api.ItemSkipped:
		span.Attributes = append(span.Attributes, otlp.Attribute{Key: "janus.item.times", Value: "not begun"})
	default:
		span.Start = parent.Start
		span.Attributes = append(span.Attributes, otlp.Attribute{Key: "janus.item.times", Value: "of the Transaction"})
	}
	if item.Failed || item.State == api.ItemRejected || item.State == api.ItemUnresolved {
		span.Failure = item.Reason
	}
	return span
}
