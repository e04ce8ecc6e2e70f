package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	txn "janus.io/janus/api/v1alpha1"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/packages/controller/progress"
)

// telling is an Observer that keeps what it is told: names and reasons.
type telling struct {
	heard    []string
	census   *Census
	failed   int64
	outcomes []string
}

func (o *telling) Happened(p *api.PackageTransaction, what progress.Happening) {
	o.heard = append(o.heard, p.Name+" "+what.Reason)
	o.failed += what.Failed
	if what.Outcome != "" {
		o.outcomes = append(o.outcomes, what.Outcome)
	}
}

func (o *telling) Looked(at *Census) { o.census = at }

func (o *telling) times(what string) int {
	n := 0
	for _, heard := range o.heard {
		if heard == what {
			n++
		}
	}
	return n
}

// hasTold wants people to have been told all that has happened, in that order and each once; an
// "again" is not looked at. If a process has died, or there were two, each may be told once more, and what a
// dead one has recorded last but not told at the end may be lost, but for how it has ended.
func (w *world) hasTold(fault string, want ...string) {
	w.t.Helper()
	for i := range want {
		want[i] = strings.TrimSuffix(want[i], " again")
	}
	switch fault {
	case crashBefore, crashAfter, beside:
		for _, heard := range w.told.heard {
			assert.Contains(w.t, want, heard)
		}
		for _, one := range want {
			wanted := 0
			for _, other := range want {
				if other == one {
					wanted++
				}
			}
			assert.LessOrEqual(w.t, w.told.times(one), wanted+1, "%s: %v", one, w.told.heard)
			if strings.HasSuffix(one, progress.TransactionComplete) {
				assert.GreaterOrEqual(w.t, w.told.times(one), 1, "%s: %v", one, w.told.heard)
			}
		}
	default:
		assert.ElementsMatch(w.t, want, w.told.heard)
		if fault == "" {
			assert.Equal(w.t, want, w.told.heard)
		}
	}
}

// How many wait, and how many run, is told after each look.
func TestHowManyWaitIsTold(t *testing.T) {
	w := newWorld(t, []string{"one", "two", "three"}, txn.PhaseCommitted)
	c := w.process(w.ledger)
	_, err := c.pass(t.Context(), w.listed())
	require.NoError(t, err)
	oldest := w.all()[1].CreationTimestamp.Time
	assert.Equal(t, &Census{Waiting: 2, Running: 1, Oldest: oldest}, w.told.census)
	w.drive("", -1, nil)
	_, err = c.pass(t.Context(), w.listed())
	require.NoError(t, err)
	assert.Equal(t, &Census{}, w.told.census)
	assert.Len(t, c.seen, 3, "those that there are")
	require.NoError(t, w.admin.Resource(api.Resource).Delete(t.Context(), "one", metav1.DeleteOptions{}))
	_, err = c.pass(t.Context(), w.listed())
	require.NoError(t, err)
	assert.Len(t, c.seen, 2, "what is gone is forgotten")
}

func TestEventsAndMetricsOfPackageTransactions(t *testing.T) {
	w := newWorld(t, []string{"one", "two"}, txn.PhaseRolledBack, txn.PhaseCommitted)
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry, w.clock)
	require.NoError(t, err)
	recorder := events.NewFakeRecorder(100)
	c := w.process(w.ledger)
	c.Observer = NewRecorder(recorder, metrics, zap.NewNop())

	assert.Empty(t, samples(t, registry, "janus_package_transactions"), "nothing was looked at yet")
	assert.InDelta(t, 0, samples(t, registry, "janus_package_transactions_total")["Install InstallationFailed"], 0, "the first failure is an increase")
	_, err = c.pass(t.Context(), w.listed())
	require.NoError(t, err)
	assert.Equal(t, map[string]float64{"waiting": 1, "running": 1}, samples(t, registry, "janus_package_transactions"))
	assert.Positive(t, samples(t, registry, "janus_package_transaction_longest_wait_seconds")[""])
	for !w.settled() {
		after, err := c.pass(t.Context(), w.listed())
		require.NoError(t, err)
		w.clock.Step(after)
		w.janus()
	}
	_, err = c.pass(t.Context(), w.listed())
	require.NoError(t, err)

	assert.Equal(t, map[string]float64{"waiting": 0, "running": 0}, samples(t, registry, "janus_package_transactions"))
	assert.Equal(t, map[string]float64{"": 0}, samples(t, registry, "janus_package_transaction_longest_wait_seconds"))
	total := samples(t, registry, "janus_package_transactions_total")
	assert.Len(t, total, 3*len(progress.Outcomes), "no label has another value")
	assert.InDelta(t, 2, total["Delete TransactionComplete"], 0)
	assert.InDelta(t, 0, total["Delete InstallationFailed"], 0)
	assert.InDelta(t, 1, samples(t, registry, "janus_package_transaction_failed_attempts_total")["Delete"], 0)
	assert.InDelta(t, 2, samples(t, registry, "janus_package_transaction_wait_seconds")[""], 0)
	assert.InDelta(t, 2, samples(t, registry, "janus_package_transaction_duration_seconds")["TransactionComplete"], 0)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	assert.Empty(t, problems)
	c.Observer.Looked(nil)
	assert.Empty(t, samples(t, registry, "janus_package_transactions"), "another replica runs them")

	close(recorder.Events)
	var said []string
	for event := range recorder.Events {
		said = append(said, event)
	}
	require.Len(t, said, 10, said)
	assert.True(t, slices.ContainsFunc(said, func(s string) bool {
		return strings.HasPrefix(s, "Normal WaitingForLock waiting for PackageTransaction one")
	}), said)
	assert.True(t, slices.ContainsFunc(said, func(s string) bool {
		return strings.HasPrefix(s, "Warning InstallationFailed attempt 1 of 5 has failed, the next begins at ")
	}), said)
	assert.True(t, slices.ContainsFunc(said, func(s string) bool {
		return strings.HasPrefix(s, "Normal InstallationInProgress attempt 2: Transaction shop/")
	}), said)
}

// samples are the values of a metric by its labels, in the order of their names; of a histogram the counts.
func samples(t *testing.T, from prometheus.Gatherer, name string) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if h := m.GetHistogram(); h != nil {
				value = float64(h.GetSampleCount())
			}
			out[strings.Join(labels, " ")] = value
		}
	}
	return out
}
