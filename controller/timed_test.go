package controller

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
)

// holding puts the finalizer on, and does nothing else.
type holding struct{ engine.Journal }

func (holding) AddFinalizer(_ context.Context, t *api.Transaction) (*api.Transaction, error) {
	return t, nil
}

// What the status says is by the second, and by a clock that may be wrong. A process that has seen
// all of a Transaction knows better.
func TestHowLongATransactionTookIsByAMonotonicClock(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry, clock)
	require.NoError(t, err)
	journal := m.Time(holding{})
	started, ended := metav1.NewTime(clock.Now()), metav1.NewTime(clock.Now().Add(time.Hour))
	before, after := &api.Transaction{}, &api.Transaction{}
	before.UID, after.UID = "u", "u"
	before.Status.Phase = api.PhaseCommitting
	after.Status = api.TransactionStatus{Phase: api.PhaseCommitted, StartTime: &started, CompletionTime: &ended}
	_, err = journal.AddFinalizer(t.Context(), &api.Transaction{ObjectMeta: metav1.ObjectMeta{UID: "u"}})
	require.NoError(t, err)
	clock.SetTime(clock.Now().Add(7 * time.Millisecond))
	m.checkpointed(before, after)
	assert.Equal(t, uint64(1), bucket(t, registry, 0.01), "7 ms")

	// Another process has begun it: what it put on record counts. So it does when a rollback is taken
	// up again, which puts the finalizer on once more.
	_, err = journal.AddFinalizer(t.Context(), after)
	require.NoError(t, err)
	m.checkpointed(before, after)
	assert.Equal(t, uint64(1), bucket(t, registry, 1800))
	assert.Equal(t, uint64(2), bucket(t, registry, 3600))
	assert.Zero(t, m.begun.Len(), "nothing is kept of what has ended")
	assert.Equal(t, 1, testutil.CollectAndCount(m.duration))
}

// bucket is how many took at most so many seconds.
func bucket(t *testing.T, registry *prometheus.Registry, atMost float64) uint64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != "janus_transaction_duration_seconds" {
			continue
		}
		buckets := f.GetMetric()[0].GetHistogram().GetBucket()
		assert.InDelta(t, 0.005, buckets[0].GetUpperBound(), 0)
		assert.InDelta(t, 86400, buckets[len(buckets)-1].GetUpperBound(), 0)
		for _, b := range buckets {
			if b.GetUpperBound() == atMost {
				return b.GetCumulativeCount()
			}
		}
	}
	require.Fail(t, "there is no such bucket")
	return 0
}
