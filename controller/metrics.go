package controller

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
	"janus.io/janus/lockmgr"
)

// Metrics are what janusd tells about Transactions. Every label has a fixed set of values, but for
// those of waitingCollector that name a namespace or a Transaction, and are bounded.
type Metrics struct {
	transitions *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	items       *prometheus.CounterVec
	locks       *prometheus.CounterVec
	itemCount   prometheus.Histogram
	active      *activeCollector
	waiting     *waitingCollector
	shards      atomic.Pointer[func() int]

	clock clock.PassiveClock
	// begun is when this process first did something about a Transaction, by uid.
	begun *lru.Cache
}

// durations are the buckets of how long Transactions take: the smallest takes milliseconds, and
// one that waits for people may take a day.
var durations = []float64{
	0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
	60, 120, 300, 600, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600, 24 * 3600,
}

// Operations on the target of an item, as the counter names them.
const (
	operationPrepare  = "prepare"
	operationCommit   = "commit"
	operationObserve  = "observe"
	operationRollback = "rollback"
)

// NewMetrics registers the metrics. Durations are told by the clock, which is to be monotonic.
func NewMetrics(registry prometheus.Registerer, c clock.PassiveClock) (*Metrics, error) {
	m := &Metrics{
		clock: c, begun: lru.New(remembered),
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "janus_transaction_phase_transitions_total",
			Help: "Phase changes of Transactions that the API server has acknowledged.",
		}, []string{"from_phase", "to_phase"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "janus_transaction_duration_seconds",
			Help:    "Seconds from the first act on a Transaction to its final phase; by whole seconds of its status if another janusd has begun it.",
			Buckets: durations,
		}, []string{"outcome"}),
		items: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "janus_item_operations_total",
			Help: "Operations on the targets of items: prepare, commit, observe, rollback; result is ok or the class of the error.",
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
		active: newActiveCollector(), waiting: newWaitingCollector(c),
	}
	held := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "janus_shards_held",
		Help: "Shards whose Transactions this janusd runs; without --shards, 1 while it runs any.",
	}, m.held)
	for _, c := range []prometheus.Collector{m.transitions, m.duration, m.items, m.locks, m.itemCount, m.active, m.waiting, held} {
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
		{api.PhasePreparing, api.PhaseCommitting}, {api.PhaseCommitting, api.PhaseCommitted},
		{api.PhaseCommitting, api.PhaseRollingBack}, {api.PhaseRollingBack, api.PhaseRolledBack},
	} {
		m.transitions.WithLabelValues(string(t[0]), string(t[1]))
	}
	for _, class := range []errclass.Class{errclass.Terminal, errclass.Conflict, errclass.Retryable, errclass.Unknown} {
		for _, operation := range []string{operationPrepare, operationCommit, operationRollback} {
			m.items.WithLabelValues(operation, class.String())
		}
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

// CountStanding makes the gauge of those whose plan waits for approval tell what count says at
// each scrape.
func (m *Metrics) CountStanding(count func() int) { m.active.standing.Store(&count) }

// CountUnended makes the gauges of what Transactions wait for tell of those that list says at each
// scrape.
func (m *Metrics) CountUnended(list func() []Unended) { m.waiting.unended.Store(&list) }

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
	if to.Terminal() {
		if took, ok := m.took(after); ok {
			m.duration.WithLabelValues(string(to)).Observe(took.Seconds())
		}
	}
}

// took is how long a Transaction that has ended took.
func (m *Metrics) took(t *api.Transaction) (time.Duration, bool) {
	if began, ok := m.begun.Get(t.UID); ok {
		m.begun.Remove(t.UID)
		return m.clock.Since(began.(time.Time)), true
	}
	s := t.Status
	if s.StartTime == nil || s.CompletionTime == nil {
		return 0, false
	}
	return s.CompletionTime.Sub(s.StartTime.Time), true
}

// Time wraps a journal so that it is known when something is first done about a Transaction: the
// status has whole seconds, of a clock that may be turned meanwhile.
func (m *Metrics) Time(journal engine.Journal) engine.Journal { return timed{journal, m} }

type timed struct {
	engine.Journal
	metrics *Metrics
}

// AddFinalizer implements engine.Journal. It is the first thing that is done.
func (j timed) AddFinalizer(ctx context.Context, t *api.Transaction) (*api.Transaction, error) {
	if _, known := j.metrics.begun.Get(t.UID); !known && t.Status.StartTime == nil {
		j.metrics.begun.Add(t.UID, j.metrics.clock.Now())
	}
	return j.Journal.AddFinalizer(ctx, t)
}

// CountPrepared wraps a planner so that every item that is prepared is counted.
func (m *Metrics) CountPrepared(planner engine.Planner) engine.Planner {
	return countedPlanner{planner, counter{m.items}}
}

type countedPlanner struct {
	engine.Planner
	counter
}

// Prepare implements engine.Planner. What is deferred is prepared later; an error is of the items
// together.
func (c countedPlanner) Prepare(ctx context.Context, t *api.Transaction, items []int, lost func()) (engine.Prepared, error) {
	prepared, err := c.Planner.Prepare(ctx, t, items, lost)
	if err != nil {
		c.count(operationPrepare, err)
		return prepared, err
	}
	for _, item := range prepared.Items {
		if item.DeferredBy == "" {
			c.count(operationPrepare, nil)
		}
	}
	return prepared, nil
}

func orPending(p api.Phase) api.Phase {
	if p == "" {
		return api.PhasePending
	}
	return p
}

// Count wraps changes so that every operation on a target is counted.
func (m *Metrics) Count(changes engine.Changes) engine.Changes {
	return counted{changes, counter{m.items}}
}

type counted struct {
	engine.Changes
	counter
}

type counter struct{ items *prometheus.CounterVec }

func (c counted) Do(ctx context.Context, in engine.Intent) error {
	err := c.Changes.Do(ctx, in)
	c.count(operationCommit, err)
	return err
}

func (c counted) Observe(ctx context.Context, in engine.Intent) (outcome.Finding, error) {
	finding, err := c.Changes.Observe(ctx, in)
	c.count(operationObserve, err)
	return finding, err
}

func (c counted) Undo(ctx context.Context, in engine.Intent) (outcome.Undone, error) {
	undone, err := c.Changes.Undo(ctx, in)
	c.count(operationRollback, err)
	return undone, err
}

func (c counter) count(operation string, err error) {
	result := "ok"
	if err != nil {
		result = errclass.ClassOf(err).String()
	}
	c.items.WithLabelValues(operation, result).Inc()
}
