package controller_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/controller"
	"janus.io/janus/engine"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/lockmgr"
	"janus.io/janus/test/harness"
)

// family is what dashboards and alerts rely on.
type family struct {
	kind   dto.MetricType
	labels map[string][]string // every value that a label may have
}

var (
	phases     = []string{"Pending", "Preparing", "Prepared", "Committing", "Committed", "RollingBack", "RolledBack", "Failed"}
	results    = []string{"ok", "terminal", "conflict", "retryable", "unknown"}
	waitsFor   = slices.DeleteFunc(slices.Clone(controller.Reasons), func(r string) bool { return r == "Running" })
	lockResult = []string{lockmgr.ResultOK, lockmgr.ResultHeld, lockmgr.ResultLost, lockmgr.ResultError}

	families = map[string]family{
		"janus_transaction_phase_transitions_total": {dto.MetricType_COUNTER, map[string][]string{"from_phase": phases, "to_phase": phases}},
		"janus_transaction_duration_seconds":        {dto.MetricType_HISTOGRAM, map[string][]string{"outcome": {"Committed", "RolledBack", "Failed"}}},
		"janus_transactions_active":                 {dto.MetricType_GAUGE, map[string][]string{"phase": {"Pending", "Preparing", "Prepared", "Committing", "RollingBack"}}},
		"janus_transactions_awaiting_approval":      {dto.MetricType_GAUGE, map[string][]string{}},
		"janus_transactions_waiting":                {dto.MetricType_GAUGE, map[string][]string{"reason": waitsFor}},
		"janus_transactions_past_half_timeout":      {dto.MetricType_GAUGE, map[string][]string{"reason": controller.Reasons}},
		"janus_item_operations_total":               {dto.MetricType_COUNTER, map[string][]string{"operation": {"prepare", "commit", "observe", "rollback"}, "result": results}},
		"janus_lock_operations_total":               {dto.MetricType_COUNTER, map[string][]string{"operation": {"acquire", "renew", "release"}, "result": lockResult}},
		"janus_shards_held":                         {dto.MetricType_GAUGE, map[string][]string{}},
		"janus_transaction_item_count":              {dto.MetricType_HISTOGRAM, map[string][]string{}},
	}
)

func TestMetricsOfACommitAndARollback(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {v: "1"}}`)
	j := e.Start(harness.WithChanges(func(c engine.Changes) engine.Changes { return refusing{c} }))
	patch := func(v string) string {
		return `{target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {v: "` + v + `"}}}`
	}
	txn := e.Run("commit", "changes: ["+patch("2")+"]")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	create := func(name string) string {
		return `{name: ` + name + `, target: {apiVersion: v1, kind: ConfigMap, name: ` + name + `}, type: Create, content: {}}`
	}
	txn = e.Run("rollback", "changes: ["+patch("3")+", "+create("new")+", "+create("refused")+"]")
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	txn = e.Run("invalid", "changes: [{target: {apiVersion: v1, kind: NoSuchKind, name: x}, type: Delete}]")
	require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	j.Stop()

	problems, err := testutil.GatherAndLint(j.Metrics)
	require.NoError(t, err)
	assert.Empty(t, problems)

	got, err := j.Metrics.Gather()
	require.NoError(t, err)
	var names []string
	for _, f := range got {
		names = append(names, f.GetName())
		want := families[f.GetName()]
		assert.Equal(t, want.kind, f.GetType(), f.GetName())
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName())
				assert.Contains(t, want.labels[l.GetName()], l.GetValue(), "%s{%s}", f.GetName(), l.GetName())
			}
			assert.ElementsMatch(t, slices.Collect(maps.Keys(want.labels)), labels, f.GetName())
		}
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(families)), names)

	for transition, want := range map[[2]string]float64{
		{"Pending", "Preparing"}: 2, {"Preparing", "Committing"}: 2, {"Committing", "Committed"}: 1,
		{"Committing", "RollingBack"}: 1, {"RollingBack", "RolledBack"}: 1, {"Pending", "Failed"}: 1,
	} {
		assert.InDelta(t, want, valueOf(t, j.Metrics, "janus_transaction_phase_transitions_total",
			map[string]string{"from_phase": transition[0], "to_phase": transition[1]}), 0, "%v", transition)
	}
	for operation, want := range map[[2]string]float64{
		{"prepare", "ok"}: 4, {"prepare", "retryable"}: 0, {"commit", "ok"}: 3, {"commit", "terminal"}: 1, {"rollback", "ok"}: 2,
	} {
		assert.InDelta(t, want, valueOf(t, j.Metrics, "janus_item_operations_total",
			map[string]string{"operation": operation[0], "result": operation[1]}), 0, "%v", operation)
	}
	for _, outcome := range []string{"Committed", "RolledBack", "Failed"} {
		assert.InDelta(t, 1, valueOf(t, j.Metrics, "janus_transaction_duration_seconds", map[string]string{"outcome": outcome}), 0, outcome)
	}
	assert.InDelta(t, 2, valueOf(t, j.Metrics, "janus_transaction_item_count", nil), 0, "those that were accepted")
	assert.InDelta(t, 0, valueOf(t, j.Metrics, "janus_transactions_active", map[string]string{"phase": "Committing"}), 0)
}

// A Transaction that waits is counted by what it waits for, and once half of its time is over.
func TestMetricsOfTransactionsThatWait(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {v: "1"}}`)
	j := e.Start()
	of := func(name string, labels map[string]string) float64 { return valueOf(t, j.Metrics, name, labels) }
	e.Submit("first", `{timeout: 20s, changes: [
		{target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {v: "2"}}, readyWhen: {expression: "object.data.?ready.orValue('') == 'yes'", timeout: 1h}}]}`)
	e.Await("first", "waits", func(t *api.Transaction) bool {
		return len(t.Status.Items) == 1 && t.Status.Items[0].State == api.ItemCommitted
	})
	e.Submit("second", `changes: [{target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {v: "3"}}}]`)
	e.Until("both are counted", func() bool {
		return of("janus_transactions_waiting", map[string]string{"reason": "NotReady"}) == 1 &&
			of("janus_transactions_waiting", map[string]string{"reason": "LockHeld"}) == 1
	})
	for _, reason := range []string{"NotReady", "LockHeld"} {
		assert.InDelta(t, 1, of("janus_namespace_transactions", map[string]string{"transaction_namespace": e.Namespace, "reason": reason}), 0)
	}
	assert.InDelta(t, 0, of("janus_transactions_past_half_timeout", map[string]string{"reason": "NotReady"}), 0)
	e.Until("half of its time is over", func() bool {
		return of("janus_transactions_past_half_timeout", map[string]string{"reason": "NotReady"}) == 1
	})
	require.Nil(t, e.Transaction("first").Status.CompletionTime, "it is told in time")
	assert.InDelta(t, 0, of("janus_transactions_past_half_timeout", map[string]string{"reason": "LockHeld"}), 0, "the other has 30 minutes")

	problems, err := testutil.GatherAndLint(j.Metrics)
	require.NoError(t, err)
	assert.Empty(t, problems)
	e.Ended("first")
	e.Ended("second")
	e.Until("none waits", func() bool {
		return of("janus_transactions_past_half_timeout", map[string]string{"reason": "NotReady"}) == 0 &&
			of("janus_transactions_waiting", map[string]string{"reason": "LockHeld"}) == 0
	})
}

// refusing refuses the change of an item of that name.
type refusing struct{ engine.Changes }

func (r refusing) Do(ctx context.Context, in engine.Intent) error {
	if in.Item().Name == "refused" {
		return errclass.New(errclass.Terminal, errclass.Rejected, "create", in.Item().Target.String(), "denied by policy")
	}
	return r.Changes.Do(ctx, in)
}

// valueOf reads a counter or gauge, or the number of observations of a histogram.
func valueOf(t *testing.T, g prometheus.Gatherer, name string, labels map[string]string) float64 {
	t.Helper()
	all, err := g.Gather()
	require.NoError(t, err)
	for _, f := range all {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			got := map[string]string{}
			for _, l := range m.GetLabel() {
				got[l.GetName()] = l.GetValue()
			}
			if !maps.Equal(got, labels) && len(got)+len(labels) > 0 {
				continue
			}
			switch {
			case m.Counter != nil:
				return m.Counter.GetValue()
			case m.Gauge != nil:
				return m.Gauge.GetValue()
			case m.Histogram != nil:
				return float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return 0
}
