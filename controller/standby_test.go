package controller_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/controller"
	"janus.io/janus/engine"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// watching runs Watch until the end of the test.
func (r *rig) watching() {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { r.ctl.Watch(ctx) })
	r.t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	require.True(r.t, cache.WaitForCacheSync(r.t.Context().Done(), r.ctl.Synced))
}

// working runs Work until the end of the test.
func (r *rig) working() {
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() { assert.NoError(r.t, r.ctl.Work(ctx)) })
	r.t.Cleanup(func() {
		cancel()
		working.Wait()
	})
}

// A replica that waits to lead knows the Transactions and leaves them alone. When it leads it
// need not ask for them.
func TestAStandbyKnowsTheTransactionsBeforeItLeads(t *testing.T) {
	t.Parallel()
	var lists atomic.Int32
	r := newRig(t, harness.New(t), parts{workers: 2, wrap: func(next http.RoundTripper) http.RoundTripper {
		return harness.RoundTrip(func(req *http.Request) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/transactions") {
				lists.Add(1)
			}
			return next.RoundTrip(req)
		})
	}})
	r.Submit("before", three)
	r.watching()
	r.Submit("meanwhile", three)
	asked := lists.Load()
	assert.Zero(t, r.readsOf("before"), "it does not lead")
	assert.Empty(t, r.Transaction("before").Finalizers)
	assert.Empty(t, r.ctl.Active())

	r.working()
	for _, name := range []string{"before", "meanwhile"} {
		assert.Equal(t, api.PhaseCommitted, r.Ended(name).Status.Phase)
	}
	assert.Equal(t, asked, lists.Load(), "nothing was listed or watched anew")
}

// Each time that something was done the wait between two attempts begins again.
func TestTheBackOffBeginsAgainAfterASuccess(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	attempts := map[int]int{}
	var last time.Time
	var waits []time.Duration
	do := func(_ context.Context, in engine.Intent) error {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if attempts[in.Index()]++; attempts[in.Index()] > 1 {
			waits = append(waits, now.Sub(last))
		}
		last = now
		if attempts[in.Index()] <= 3 {
			return errclass.New(errclass.Retryable, errclass.TooManyRequests, "delete", "ConfigMap", "too many requests")
		}
		return nil
	}
	const base = 100 * time.Millisecond
	r := newRig(t, harness.New(t), parts{do: do, options: func(o *controller.Options) { o.RetryBase, o.RetryMax = base, time.Hour }}).start()
	r.Submit("txn", three)
	assert.Equal(t, api.PhaseCommitted, r.Ended("txn").Status.Phase)
	require.Len(t, waits, 9)
	for i, wait := range waits {
		assert.GreaterOrEqual(t, wait, base<<(i%3), "%d of %v", i, waits)
	}
	// It would be 64 times the first one if it had been doubled each time.
	assert.Less(t, waits[6], 32*base, "the first wait of a change, %v", waits)
}

// One that has failed is looked at again, and one of which nothing remains to be done is not.
func TestAResyncLooksAtWhatMayHaveBeenMissed(t *testing.T) {
	t.Parallel()
	r := newRig(t, harness.New(t), parts{options: func(o *controller.Options) { o.Resync = 300 * time.Millisecond }}).start()
	r.Submit("suspended", "suspend: true\n"+three)
	require.NoError(t, harness.Poll(t.Context(), func(context.Context) (bool, error) { return r.readsOf("suspended") >= 4, nil }))
}
