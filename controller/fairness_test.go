package controller_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/controller"
	"janus.io/janus/engine"
	"janus.io/janus/test/harness"
)

const one = `changes: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Delete}]`

// ended counts the Transactions of a namespace that have ended.
func ended(t *testing.T, e *harness.Env) (n int) {
	t.Helper()
	list, err := e.Dynamic.Resource(api.Resource).Namespace(e.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, item := range list.Items {
		if status, ok := item.Object["status"].(map[string]any); ok && status["completionTime"] != nil {
			n++
		}
	}
	return n
}

func TestManyTransactionsOfOneNamespaceDoNotHoldUpAnother(t *testing.T) {
	t.Parallel()
	const many = 300
	busy, quiet := harness.New(t), harness.New(t)
	for n := range many {
		busy.Submit(fmt.Sprintf("txn-%03d", n), one)
	}
	r := newRig(t, busy, parts{workers: 4, watch: []string{quiet.Namespace}})
	r.start()
	busy.Until("the first of them has ended", func() bool { return ended(t, busy) > 0 })

	quiet.Submit("late", three)
	assert.Equal(t, api.PhaseCommitted, quiet.Ended("late").Status.Phase)
	assert.Less(t, ended(t, busy), many/2, "it came when all of them waited, and had one turn of theirs to wait")

	busy.Until("all of them have ended", func() bool { return ended(t, busy) == many })
}

// A Transaction of many changes keeps its worker while nobody else wants it.
func TestALongTransactionMakesRoomForAnotherNamespace(t *testing.T) {
	t.Parallel()
	const many = 60
	busy, quiet := harness.New(t), harness.New(t)
	var dos, othersDo atomic.Int32
	begun, submitted := make(chan struct{}), make(chan struct{})
	var r *rig
	r = newRig(t, busy, parts{turn: time.Millisecond, watch: []string{quiet.Namespace}, do: func(ctx context.Context, in engine.Intent) error {
		switch {
		case in.Transaction().Namespace == quiet.Namespace:
			othersDo.Store(dos.Load())
		case dos.Add(1) == many/3:
			close(begun)
			<-submitted
			return harness.Poll(ctx, func(context.Context) (bool, error) {
				active := 0
				for _, n := range r.ctl.Active() {
					active += n
				}
				return active == 2, nil // The watch has told of the other.
			})
		case dos.Load() > many/3:
			time.Sleep(10 * time.Millisecond) // One in each turn.
		}
		return nil
	}})
	r.start()
	var changes strings.Builder
	changes.WriteString("changes:\n")
	for n := range many {
		fmt.Fprintf(&changes, "- {target: {apiVersion: v1, kind: ConfigMap, name: c%d}, type: Delete}\n", n)
	}
	busy.Submit("long", changes.String())
	<-begun
	assert.Equal(t, 1, r.readsOf("long"), "nobody waited")
	quiet.Submit("short", three)
	close(submitted)
	assert.Equal(t, api.PhaseCommitted, quiet.Ended("short").Status.Phase)
	assert.Equal(t, api.PhaseCommitted, busy.Ended("long").Status.Phase)

	assert.Less(t, othersDo.Load(), int32(many), "the only worker was given up in between")
	assert.Equal(t, int32(many), dos.Load(), "each change was made once")
	assert.Greater(t, r.readsOf("long"), 1, "it was taken up again")
}

// Requests of one namespace that are not answered take the workers that it may have, and no other.
func TestRequestsThatHangInOneNamespaceDoNotHoldUpAnother(t *testing.T) {
	t.Parallel()
	const workers, many = 3, 8
	busy, quiet := harness.New(t), harness.New(t)
	var hanging atomic.Int32
	answered := make(chan struct{})
	r := newRig(t, busy, parts{
		workers: workers, turn: time.Millisecond, watch: []string{quiet.Namespace},
		options: func(o *controller.Options) { o.Spare = 1 },
		do: func(_ context.Context, in engine.Intent) error {
			if in.Transaction().Namespace == busy.Namespace {
				hanging.Add(1)
				<-answered
			}
			return nil
		},
	})
	r.start()
	t.Cleanup(sync.OnceFunc(func() { close(answered) })) // Before the rig stops, which waits for it.
	for n := range many {
		busy.Submit(fmt.Sprintf("hangs-%d", n), one)
	}
	busy.Until("all its workers are taken", func() bool { return hanging.Load() == workers })
	for n := range 3 {
		quiet.Submit(fmt.Sprintf("small-%d", n), three)
		assert.Equal(t, api.PhaseCommitted, quiet.Ended(fmt.Sprintf("small-%d", n)).Status.Phase)
	}
	assert.EqualValues(t, workers, hanging.Load(), "the rest of them waits")
}
