package controller

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// What has names in its labels is bounded, so that the number of series does not grow with use.
const (
	// mostNamespaces are told apart: those with the most Transactions.
	mostNamespaces = 100
	// mostSlow Transactions are named: those that have run for longest.
	mostSlow = 10
	// slow is how long a Transaction runs before it is named: a name that comes and goes between
	// two scrapes would be a series of its own for nothing.
	slow = time.Minute
)

// waitingCollector tells of the Transactions that have not ended what they wait for, and for how
// long, when it is scraped.
type waitingCollector struct {
	clock                          clock.PassiveClock
	unended                        atomic.Pointer[func() []Unended]
	waiting, pastHalf, in, slowest *prometheus.Desc
}

func newWaitingCollector(c clock.PassiveClock) *waitingCollector {
	return &waitingCollector{
		clock: c,
		waiting: prometheus.NewDesc("janus_transactions_waiting",
			"Transactions that have not ended and wait, by reason.", []string{"reason"}, nil),
		pastHalf: prometheus.NewDesc("janus_transactions_past_half_timeout",
			"Transactions that have not ended and have used half of their spec.timeout, or half of that of their rollback, by what they wait for.", []string{"reason"}, nil),
		in: prometheus.NewDesc("janus_namespace_transactions",
			"Transactions that have not ended, by namespace and what they wait for: of the 100 namespaces that have the most.", []string{"transaction_namespace", "reason"}, nil),
		slowest: prometheus.NewDesc("janus_transaction_running_seconds",
			"Seconds since the beginning of the 10 Transactions that have run for longest, if that is more than a minute.", []string{"transaction_namespace", "transaction"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *waitingCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.waiting, c.pastHalf, c.in, c.slowest} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector. Until the Transactions have been listed there is
// nothing to tell.
func (c *waitingCollector) Collect(ch chan<- prometheus.Metric) {
	list := c.unended.Load()
	if list == nil {
		return
	}
	unended, now := (*list)(), c.clock.Now()
	waiting, pastHalf := map[string]int{}, map[string]int{}
	for _, u := range unended {
		waiting[u.Reason]++
		if !u.HalfTime.IsZero() && now.After(u.HalfTime) {
			pastHalf[u.Reason]++
		}
	}
	for _, reason := range Reasons {
		ch <- prometheus.MustNewConstMetric(c.pastHalf, prometheus.GaugeValue, float64(pastHalf[reason]), reason)
		if reason != reasonRunning {
			ch <- prometheus.MustNewConstMetric(c.waiting, prometheus.GaugeValue, float64(waiting[reason]), reason)
		}
	}
	c.byNamespace(ch, unended)
	c.bySlowness(ch, unended, now)
}

func (c *waitingCollector) byNamespace(ch chan<- prometheus.Metric, unended []Unended) {
	counts, totals := map[[2]string]int{}, map[string]int{}
	var namespaces []string
	for _, u := range unended {
		if totals[u.Name.Namespace] == 0 {
			namespaces = append(namespaces, u.Name.Namespace)
		}
		totals[u.Name.Namespace]++
		counts[[2]string{u.Name.Namespace, u.Reason}]++
	}
	slices.SortFunc(namespaces, func(a, b string) int { return cmp.Or(totals[b]-totals[a], cmp.Compare(a, b)) })
	for _, namespace := range namespaces[:min(len(namespaces), mostNamespaces)] {
		for _, reason := range Reasons {
			if n := counts[[2]string{namespace, reason}]; n > 0 {
				ch <- prometheus.MustNewConstMetric(c.in, prometheus.GaugeValue, float64(n), namespace, reason)
			}
		}
	}
}

func (c *waitingCollector) bySlowness(ch chan<- prometheus.Metric, unended []Unended, now time.Time) {
	slices.SortFunc(unended, func(a, b Unended) int { return a.Since.Compare(b.Since) })
	for _, u := range unended[:min(len(unended), mostSlow)] {
		if ran := now.Sub(u.Since); ran > slow {
			ch <- prometheus.MustNewConstMetric(c.slowest, prometheus.GaugeValue, ran.Seconds(), u.Name.Namespace, u.Name.Name)
		}
	}
}
