package controller

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
	"janus.io/janus/lockmgr"
)

// Metrics are what janusd tells about Transactions. Every label has a fixed set of
// values; no label names a Transaction.
type Metrics struct {
	transitions *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	items       *prometheus.CounterVec
	locks       *prometheus.CounterVec
	itemCount   prometheus.Histogram
	active      *activeCollector
	shards      atomic.Pointer[func() int]
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "janus_transaction_phase_transitions_total",
			Help: "Phase changes of Transactions that the API server has acknowledged.",
		}, []string{"from_phase", "to_phase"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "janus_transaction_duration_seconds",
			Help:    "Seconds from the first act on a Transaction to its final phase.",
			Buckets: prometheus.ExponentialBuckets(0.05, 2, 16),
		}, []string{"outcome"}),
		items: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "janus_item_operations_total",
			Help: "Operations on the targets of items: do, observe, undo; result is ok or the class of the error.",
		}, []string{"operation", "result"}),
		locks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "janus_lock_operations_total",
			Help: "Operations on lock Leases: acquire, renew, release.",
		}, []string{"operation", "result"}),
		itemCount: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "janus_transaction_item_count",
			Help:    "Number of changes of the Transactions that were accepted.",
			Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000},
		}),
		active: newActiveCollector(),
	}
	held := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "janus_shards_held",
		Help: "Shards whose Transactions this janusd runs; without --shards, 1 while it runs any.",
	}, m.held)
	for _, c := range []prometheus.Collector{m.transitions, m.duration, m.items, m.locks, m.itemCount, m.active, held} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	m.begin()
	return m, nil
}

// begin serves the counters that alerts are about before there is anything to count. One
// that appears with its first count has not increased, as Prometheus sees it, and the first
// failure after a start would go unnoticed.
func (m *Metrics) begin() {
	for _, from := range activePhases {
		m.transitions.WithLabelValues(string(from), string(api.PhaseFailed))
	}
	for _, t := range [][2]api.Phase{
		{api.PhasePrepared, api.PhaseCommitting}, {api.PhaseCommitting, api.PhaseCommitted},
		{api.PhaseCommitting, api.PhaseRollingBack}, {api.PhaseRollingBack, api.PhaseRolledBack},
	} {
		m.transitions.WithLabelValues(string(t[0]), string(t[1]))
	}
	for _, class := range []errclass.Class{errclass.Terminal, errclass.Conflict, errclass.Retryable, errclass.Unknown} {
		m.items.WithLabelValues("do", class.String())
		m.items.WithLabelValues("undo", class.String())
	}
	m.locks.WithLabelValues(lockmgr.OperationAcquire, lockmgr.ResultHeld)
	m.locks.WithLabelValues(lockmgr.OperationRenew, lockmgr.ResultLost)
	m.locks.WithLabelValues(lockmgr.OperationRelease, lockmgr.ResultLost)
}

// LockOperation counts an operation on a Lease; lockmgr calls it.
func (m *Metrics) LockOperation(operation, result string) {
	m.locks.WithLabelValues(operation, result).Inc()
}

// CountActive makes the gauge of running Transactions tell what count says at
// each scrape.
func (m *Metrics) CountActive(count func() map[api.Phase]int) { m.active.count.Store(&count) }

// CountShards makes the gauge of shards tell what count says at each scrape.
func (m *Metrics) CountShards(count func() int) { m.shards.Store(&count) }

func (m *Metrics) held() float64 {
	if count := m.shards.Load(); count != nil {
		return float64((*count)())
	}
	return 0
}

func (m *Metrics) checkpointed(before, after *api.Transaction) {
	from, to := orPending(before.Status.Phase), after.Status.Phase
	if from == to {
		return
	}
	m.transitions.WithLabelValues(string(from), string(to)).Inc()
	if to == api.PhasePreparing {
		m.itemCount.Observe(float64(len(after.Spec.Changes)))
	}
	if s := after.Status; to.Terminal() && s.StartTime != nil && s.CompletionTime != nil {
		m.duration.WithLabelValues(string(to)).Observe(s.CompletionTime.Sub(s.StartTime.Time).Seconds())
	}
}

func orPending(p api.Phase) api.Phase {
	if p == "" {
		return api.PhasePending
	}
	return p
}

// Count wraps changes so that every operation on a target is counted.
func (m *Metrics) Count(changes engine.Changes) engine.Changes { return counted{changes, m.items} }

type counted struct {
	engine.Changes
	items *prometheus.CounterVec
}

func (c counted) Do(ctx context.Context, in engine.Intent) error {
	err := c.Changes.Do(ctx, in)
	c.count("do", err)
	return err
}

func (c counted) Observe(ctx context.Context, in engine.Intent) (outcome.Finding, error) {
	finding, err := c.Changes.Observe(ctx, in)
	c.count("observe", err)
	return finding, err
}

func (c counted) Undo(ctx context.Context, in engine.Intent) (outcome.Undone, error) {
	undone, err := c.Changes.Undo(ctx, in)
	c.count("undo", err)
	return undone, err
}

func (c counted) count(operation string, err error) {
	result := "ok"
	if err != nil {
		result = errclass.ClassOf(err).String()
	}
	c.items.WithLabelValues(operation, result).Inc()
}
