package controller_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/internal/shard"
	"janus.io/janus/test/harness"
)

// inShard makes up a name of a Transaction that is in a shard of two.
func (r *rig) inShard(number, n int) string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("txn-%d-%d", n, i)
		if shard.Of(types.NamespacedName{Namespace: r.Namespace, Name: name}, 2) == number {
			return name
		}
	}
}

// serve serves a shard, and returns what makes it stop.
func (r *rig) serve(number int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ctl.Serve(ctx, number)
	}()
	stop = func() {
		cancel()
		<-done
	}
	r.t.Cleanup(stop)
	return stop
}

func TestTransactionsOfOtherShardsAreLeftAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, harness.New(t), parts{shards: 2, workers: 2})
	ours, theirs, later := r.inShard(0, 1), r.inShard(1, 1), r.inShard(0, 2)
	r.Submit(theirs, three)
	r.Submit(ours, three)
	r.start()
	stop := r.serve(0)
	assert.Equal(t, api.PhaseCommitted, r.Ended(ours).Status.Phase, "it was there before the shard was taken")
	r.Submit(later, three)
	r.Ended(later)
	assert.Equal(t, 0, r.readsOf(theirs))
	assert.Empty(t, r.Transaction(theirs).Finalizers)
	const metrics = `
# HELP janus_shards_held Shards whose Transactions this janusd runs; without --shards, 1 while it runs any.
# TYPE janus_shards_held gauge
janus_shards_held 1
# HELP janus_transactions_active Transactions that have not ended, by phase; those whose plan waits for approval left out.
# TYPE janus_transactions_active gauge
janus_transactions_active{phase="Committing"} 0
janus_transactions_active{phase="Pending"} 0
janus_transactions_active{phase="Prepared"} 0
janus_transactions_active{phase="Preparing"} 0
janus_transactions_active{phase="RollingBack"} 0
`
	var difference error
	require.NoError(t, harness.Poll(t.Context(), func(context.Context) (bool, error) {
		difference = testutil.GatherAndCompare(r.registry, strings.NewReader(metrics), "janus_shards_held", "janus_transactions_active")
		return difference == nil, nil
	}), "others count theirs: %v", difference)

	r.serve(1)
	assert.Equal(t, api.PhaseCommitted, r.Ended(theirs).Status.Phase)
	stop()
	last := r.inShard(0, 3)
	r.Submit(last, three)
	witness := r.inShard(1, 3)
	r.Submit(witness, three)
	r.Ended(witness) // Events arrive in order.
	assert.Equal(t, 0, r.readsOf(last), "the shard was given up")
}

// A Transaction goes from one replica to another and back, each time in the middle of a
// step: each change is made once.
func TestAShardIsHandedOverBetweenTwoSteps(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	var dos atomic.Int32
	begun, goOn := make(chan struct{}), make(chan struct{})
	do := func(context.Context, engine.Intent) error {
		dos.Add(1)
		begun <- struct{}{}
		<-goOn
		return nil
	}
	first, second := newRig(t, e, parts{shards: 2, do: do}), newRig(t, e, parts{shards: 2, do: do})
	name := first.inShard(0, 1)
	first.start()
	second.start()
	e.Submit(name, three)
	for n, r := range []*rig{first, second, first} {
		stop := r.serve(0)
		<-begun
		stopped := make(chan struct{})
		go func() {
			stop()
			close(stopped)
		}()
		require.NoError(t, harness.Poll(t.Context(), func(context.Context) (bool, error) { return r.ctl.Shards() == 0, nil }))
		select {
		case <-stopped:
			require.Fail(t, "the shard was given up with a step in flight")
		default:
		}
		goOn <- struct{}{}
		<-stopped
		assert.Equal(t, fmt.Sprintf("%d/3", n+1), e.Transaction(name).Status.Progress, "what was done is on record")
	}
	assert.Equal(t, int32(3), dos.Load(), "each change was made once")
	second.serve(0)
	assert.Equal(t, api.PhaseCommitted, e.Ended(name).Status.Phase)
}
