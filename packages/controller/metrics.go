package controller

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/packages/controller/progress"
)

// Metrics are what janusd tells about PackageTransactions. Every label has a fixed set of
// values; no label names a package.
type Metrics struct {
	ended    *prometheus.CounterVec
	failed   *prometheus.CounterVec
	duration *prometheus.HistogramVec
	wait     prometheus.Histogram
	census   *censusCollector
}

// durations are the buckets, in seconds: an installation takes seconds, and one whose registry
// does not answer hours.
var durations = []float64{1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600, 24 * 3600}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer, c clock.PassiveClock) (*Metrics, error) {
	m := &Metrics{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "janus_package_transactions_total",
			Help: "PackageTransactions that have ended, by the reason of their condition Ready; Deleted if they were deleted before.",
		}, []string{"change", "outcome"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "janus_package_transaction_failed_attempts_total",
			Help: "Attempts of PackageTransactions that have failed.",
		}, []string{"change"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "janus_package_transaction_duration_seconds",
			Help:    "Seconds for which PackageTransactions had the lock, all attempts and the waits between them included.",
			Buckets: durations,
		}, []string{"outcome"}),
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "janus_package_transaction_wait_seconds",
			Help:    "Seconds from the creation of PackageTransactions until they got the lock.",
			Buckets: durations,
		}),
		census: newCensusCollector(c),
	}
	for _, c := range []prometheus.Collector{m.ended, m.failed, m.duration, m.wait, m.census} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	// The first failure after a start is an increase only if there was a 0 before.
	for _, change := range []api.ChangeType{api.Install, api.Delete, api.Replace} {
		m.failed.WithLabelValues(string(change))
		for _, outcome := range progress.Outcomes {
			m.ended.WithLabelValues(string(change), outcome)
		}
	}
	return m, nil
}

func (m *Metrics) happened(p *api.PackageTransaction, what progress.Happening) {
	m.failed.WithLabelValues(string(p.Spec.Change)).Add(float64(what.Failed))
	if what.Outcome == "" {
		return
	}
	m.ended.WithLabelValues(string(p.Spec.Change), what.Outcome).Inc()
	if s := p.Status; s.StartTime != nil && s.CompletionTime != nil {
		m.wait.Observe(s.StartTime.Sub(p.CreationTimestamp.Time).Seconds())
		m.duration.WithLabelValues(what.Outcome).Observe(s.CompletionTime.Sub(s.StartTime.Time).Seconds())
	}
}

func (m *Metrics) looked(at *Census) { m.census.last.Store(at) }

// censusCollector says what the last look at all PackageTransactions has found. A process that does not
// run them has nothing to say.
type censusCollector struct {
	clock        clock.PassiveClock
	last         atomic.Pointer[Census]
	count, delay *prometheus.Desc
}

func newCensusCollector(c clock.PassiveClock) *censusCollector {
	return &censusCollector{
		clock: c,
		count: prometheus.NewDesc("janus_package_transactions", "PackageTransactions that have not ended: waiting for the lock, or running.", []string{"state"}, nil),
		delay: prometheus.NewDesc("janus_package_transaction_longest_wait_seconds", "Seconds since the oldest PackageTransaction that waits for the lock was created; 0 if none waits.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *censusCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.count
	ch <- c.delay
}

// Collect implements prometheus.Collector.
func (c *censusCollector) Collect(ch chan<- prometheus.Metric) {
	last := c.last.Load()
	if last == nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(c.count, prometheus.GaugeValue, float64(last.Waiting), "waiting")
	ch <- prometheus.MustNewConstMetric(c.count, prometheus.GaugeValue, float64(last.Running), "running")
	longest := 0.0
	if !last.Oldest.IsZero() {
		longest = max(0, c.clock.Since(last.Oldest).Seconds())
	}
	ch <- prometheus.MustNewConstMetric(c.delay, prometheus.GaugeValue, longest)
}
