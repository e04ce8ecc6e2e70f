package controller

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	api "janus.io/janus/api/v1alpha1"
)

// activePhases are the phases of Transactions that have not ended.
var activePhases = []api.Phase{
	api.PhasePending, api.PhasePreparing, api.PhasePrepared, api.PhaseCommitting, api.PhaseRollingBack,
}

// activeCollector counts running Transactions when it is scraped, so that the
// gauge is right after a restart and cannot drift.
type activeCollector struct {
	desc  *prometheus.Desc
	count atomic.Pointer[func() map[api.Phase]int]
	// standing are those whose plan waits for approval.
	standingDesc *prometheus.Desc
	standing     atomic.Pointer[func() int]
}

func newActiveCollector() *activeCollector {
	return &activeCollector{
		desc: prometheus.NewDesc("janus_transactions_active",
			"Transactions that have not ended, by phase; those whose plan waits for approval left out.", []string{"phase"}, nil),
		standingDesc: prometheus.NewDesc("janus_transactions_awaiting_approval", "Transactions whose plan waits for approval.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *activeCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.desc
	ch <- c.standingDesc
}

// Collect implements prometheus.Collector. Until the Transactions have been
// listed there is nothing to tell.
func (c *activeCollector) Collect(ch chan<- prometheus.Metric) {
	if standing := c.standing.Load(); standing != nil {
		ch <- prometheus.MustNewConstMetric(c.standingDesc, prometheus.GaugeValue, float64((*standing)()))
	}
	count := c.count.Load()
	if count == nil {
		return
	}
	counts := (*count)()
	for _, phase := range activePhases {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(counts[phase]), string(phase))
	}
}
