package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"janus.io/janus/controller"
	packages "janus.io/janus/packages/controller"
)

const metricsIntro = `# Metrics

<!-- Generated from what janusd registers by make generate. Do not edit. -->

janusd serves these at ` + "`/metrics`" + `. Each label has a fixed set of values, but for those of
` + "`janus_namespace_transactions` and `janus_transaction_running_seconds`" + `, which are bounded. No label names a package.
[Observability](../observability.md) explains how to scrape them; the alerts are in [the runbook](../runbooks/alerts.md).

| metric | labels | what it tells |
|---|---|---|
`

var metricsRest = `
` + "`workqueue_*`, `rest_client_*` and, with leader election, `leader_election_master_status`" + ` are client-go's own. The
metrics of the Go runtime and of the process come from the Prometheus client.

` + "`operation`" + ` of items is ` + "`prepare`, `commit`, `observe` or `rollback`; `result` is `ok`, `terminal`, `conflict`, `retryable` or `unknown`" + `.
` + "`operation`" + ` of locks is ` + "`acquire`, `renew` or `release`; `result` is `ok`, `held`, `lost` or `error`" + `.
` + "`outcome`" + ` of Transactions is the final phase.
` + "`reason`" + ` is ` + reasons() + `. [Reasons](reasons.md) explains them;
` + "`Running` is of those that wait for nothing, and `Other` of those that wait for something else" + `.

` + "`change` of PackageTransactions is `Install`, `Delete` or `Replace`; `outcome` is `TransactionComplete`, `DryRun`, `ValidationFailed`, `InstallationFailed` or `Deleted`" + `.
` + "`state` is `waiting` or `running`" + `.
`

// reasons lists what Transactions can be waiting for.
func reasons() string {
	last := len(controller.Reasons) - 1
	return "`" + strings.Join(controller.Reasons[:last], "`, `") + "` or `" + controller.Reasons[last] + "`"
}

var described = regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]*)", unit: "[^"]*", constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)

// registered collects the descriptions of what is registered.
type registered struct {
	prometheus.Registerer
	descriptions []string
}

func (r *registered) Register(c prometheus.Collector) error {
	found := make(chan *prometheus.Desc, 100)
	c.Describe(found)
	close(found)
	for d := range found {
		r.descriptions = append(r.descriptions, d.String())
	}
	return nil
}

// metricsPage lists the metrics that are Janus' own.
func metricsPage() (string, error) {
	r := &registered{}
	if _, err := controller.NewMetrics(r, clock.RealClock{}); err != nil {
		return "", fmt.Errorf("register the metrics: %w", err)
	}
	if _, err := packages.NewMetrics(r, clock.RealClock{}); err != nil {
		return "", fmt.Errorf("register the metrics of PackageTransactions: %w", err)
	}
	rows := []string{ // What the command registers itself; a test compares with its source.
		"| `janus_build_info` | `version` | Always 1; the label tells the version. |\n",
		"| `janus_shards` |  | Into how many shards the Transactions are divided: --shards. |\n",
	}
	for _, d := range r.descriptions {
		found := described.FindStringSubmatch(d)
		if found == nil {
			return "", fmt.Errorf("a metric describes itself in another way: %s", d)
		}
		var labels []string
		for _, label := range strings.FieldsFunc(found[3]+","+found[4], func(c rune) bool { return c == ',' || c == ' ' }) {
			name, _, _ := strings.Cut(label, "=")
			labels = append(labels, "`"+name+"`")
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", found[1], strings.Join(labels, ", "), found[2]))
	}
	slices.Sort(rows)
	return metricsIntro + strings.Join(slices.Compact(rows), "") + metricsRest, nil
}
