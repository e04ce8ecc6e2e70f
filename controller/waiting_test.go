package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func TestWhatIsKnownOfATransactionThatHasNotEnded(t *testing.T) {
	t.Parallel()
	const begun, committing = `"startTime":"2030-01-02T12:00:00Z"`, `"phase":"Committing"`
	for title, c := range map[string]struct {
		spec, status string
		want         *progress
	}{
		"just created":       {`{}`, `{}`, &progress{reason: "Running", since: noon.Add(-time.Minute)}},
		"at work":            {`{"timeout":"10m"}`, `{` + committing + `,` + begun + `,"conditions":[{"type":"Reconciling","reason":"Committing"}]}`, &progress{"Running", noon, noon.Add(5 * time.Minute)}},
		"without a timeout":  {`{}`, `{` + committing + `,` + begun + `}`, &progress{"Running", noon, noon.Add(15 * time.Minute)}},
		"waiting":            {`{"timeout":"10m"}`, `{` + committing + `,` + begun + `,"conditions":[{"type":"Ready","reason":"Drifted"},{"type":"Reconciling","reason":"LockHeld"}]}`, &progress{"LockHeld", noon, noon.Add(5 * time.Minute)}},
		"for something else": {`{"timeout":"10m"}`, `{` + committing + `,` + begun + `,"conditions":[{"type":"Reconciling","reason":"Rejected"}]}`, &progress{"Other", noon, noon.Add(5 * time.Minute)}},
		"was suspended":      {`{"timeout":"10m"}`, `{` + committing + `,` + begun + `,"suspendedSeconds":60,"approval":{"waitedSeconds":30}}`, &progress{"Running", noon, noon.Add(5*time.Minute + 90*time.Second)}},
		"is suspended": {
			`{"timeout":"10m"}`, `{` + committing + `,` + begun + `,"suspendTime":"2030-01-02T12:01:00Z","conditions":[{"type":"Reconciling","reason":"Suspended"}]}`,
			&progress{reason: "Suspended", since: noon},
		},
		"awaits approval": {`{}`, `{"phase":"Pending",` + begun + `,"approval":{"digest":"a"}}`, &progress{reason: "AwaitingApproval", since: noon}},
		"rolling back": {
			`{"timeout":"10m"}`, `{"phase":"RollingBack",` + begun + `,"suspendedSeconds":60,"rollbackStartTime":"2030-01-02T12:20:00Z","conditions":[{"type":"Ready","reason":"LockHeld"},{"type":"Reconciling","reason":"RollingBack"}]}`,
			&progress{"Running", noon, noon.Add(25 * time.Minute)},
		},
		"ended": {`{"timeout":"10m"}`, `{"phase":"Committed",` + begun + `,"conditions":[{"type":"Reconciling","reason":"Finished"}]}`, nil},
	} {
		var is decoded
		require.NoError(t, json.Unmarshal([]byte(`{"metadata":{"name":"a","creationTimestamp":"2030-01-02T11:59:00Z"},"spec":`+c.spec+`,"status":`+c.status+`}`), &is))
		trimmed, err := trim(&is)
		require.NoError(t, err)
		got := trimmed.(*summary).progress //nolint:forcetypeassert // see above
		if got != nil {
			got.since, got.half = got.since.UTC(), got.half.UTC()
		}
		assert.Equal(t, c.want, got, title)
	}
}

// However many Transactions there are, the series are bounded.
func TestTheSeriesOfWhatWaitsAreBounded(t *testing.T) {
	t.Parallel()
	c := newWaitingCollector(testingclock.NewFakePassiveClock(noon))
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	assert.Equal(t, 0, testutil.CollectAndCount(c), "nothing is told before the Transactions are listed")
	var list []Unended
	for i := range 150 {
		for n := range 1 + i/50 {
			list = append(list, Unended{
				Name: types.NamespacedName{Namespace: fmt.Sprintf("n%03d", i), Name: fmt.Sprintf("t%d", n)}, Reason: Reasons[(i+n)%len(Reasons)],
				Since: noon.Add(-time.Duration(i) * 10 * time.Second), HalfTime: noon.Add(time.Duration(75-i) * time.Second),
			})
		}
	}
	count := func() []Unended { return slices.Clone(list) }
	c.unended.Store(&count)
	assert.Equal(t, len(Reasons), testutil.CollectAndCount(c, "janus_transactions_past_half_timeout"))
	assert.Equal(t, len(Reasons)-1, testutil.CollectAndCount(c, "janus_transactions_waiting"))
	assert.LessOrEqual(t, testutil.CollectAndCount(c, "janus_namespace_transactions"), 100*len(Reasons))
	assert.Equal(t, 10, testutil.CollectAndCount(c, "janus_transaction_running_seconds"))
	families, err := registry.Gather()
	require.NoError(t, err)
	named, waiting, past := map[string]bool{}, 0.0, 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch f.GetName() {
			case "janus_namespace_transactions":
				for _, l := range m.GetLabel() {
					if l.GetName() == "transaction_namespace" {
						named[l.GetValue()] = true
					}
				}
			case "janus_transaction_running_seconds":
				assert.GreaterOrEqual(t, m.GetGauge().GetValue(), 1450.0, "they are the slowest")
			case "janus_transactions_waiting":
				waiting += m.GetGauge().GetValue()
			case "janus_transactions_past_half_timeout":
				past += m.GetGauge().GetValue()
			}
		}
	}
	assert.Len(t, named, 100)
	assert.False(t, named["n049"], "those with fewer are left out")
	var running, late int
	for _, u := range list {
		if u.Reason == "Running" {
			running++
		}
		if u.HalfTime.Before(noon) {
			late++
		}
	}
	assert.InDelta(t, len(list)-running, waiting, 0)
	assert.InDelta(t, late, past, 0)

	one := []Unended{
		{Name: types.NamespacedName{Namespace: "a", Name: "old"}, Reason: "LockHeld", Since: noon.Add(-time.Hour)},
		{Name: types.NamespacedName{Namespace: "a", Name: "new"}, Reason: "Running", Since: noon.Add(-time.Second)},
	}
	count = func() []Unended { return one }
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP janus_transaction_running_seconds Seconds since the beginning of the 10 Transactions that have run for longest, if that is more than a minute.
# TYPE janus_transaction_running_seconds gauge
janus_transaction_running_seconds{transaction="old",transaction_namespace="a"} 3600
# HELP janus_namespace_transactions Transactions that have not ended, by namespace and what they wait for: of the 100 namespaces that have the most.
# TYPE janus_namespace_transactions gauge
janus_namespace_transactions{reason="LockHeld",transaction_namespace="a"} 1
janus_namespace_transactions{reason="Running",transaction_namespace="a"} 1
`), "janus_transaction_running_seconds", "janus_namespace_transactions"))
}
