package concurrency

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/harness"
)

// TestAJanusStoppedAfterAnyCheckpointIsResumed stops Janus right after its first
// write to the Transaction, its second, and so on until it ends without, and starts
// another each time.
func TestAJanusStoppedAfterAnyCheckpointIsResumed(t *testing.T) {
	t.Parallel()
	var names []string
	for _, w := range workloads {
		names = append(names, w.name)
	}
	harness.Together(t, len(names), names, func(t *testing.T, i int) {
		w, last := workloads[i], int32(40)
		for n := int32(1); ; n++ {
			var reached bool
			ok := t.Run(fmt.Sprint("write-", n), func(t *testing.T) { reached = w.runStopped(t, n) })
			if !reached || !ok {
				t.Logf("%d writes to the Transaction", n-1)
				return
			}
			assert.Less(t, n, last, "it does not end")
		}
	})
}

// runStopped stops Janus after the n-th write to the Transaction.
func (w workload) runStopped(t *testing.T, n int32) bool {
	e := harness.New(t)
	e.Apply(w.objects)
	if w.refuses {
		e.Refuse()
	}
	before := map[string]*unstructured.Unstructured{}
	for _, target := range w.targets {
		before[target.Ref] = e.Object(target.Ref)
	}
	var writes, after, inHand atomic.Int32
	var known api.TransactionStatus
	var first atomic.Pointer[harness.Janus]
	stopped := make(chan struct{})
	line := faultinject.NewLine()
	transport, _ := harness.Through(line)
	first.Store(e.Start(transport, harness.Recording(harness.Journaling{After: func(txn *api.Transaction) {
		last := known
		known = *txn.Status.DeepCopy()
		last.Version, known.Version = 0, 0
		asItWas := writes.Load() > 0 && equality.Semantic.DeepEqual(last, known)
		switch now := writes.Add(1); {
		case now == n:
			if asItWas || len(txn.Finalizers) == 0 && !txn.Status.Phase.Terminal() {
				// A step that took long writes the Transaction as it is before it goes on, and
				// the last step has two writes. A step in flight is finished.
				inHand.Store(1)
			}
			first.Load().Interrupt()
			close(stopped)
		case now > n && !asItWas:
			after.Add(1)
		}
	}})))
	e.Submit("txn", w.spec)
	var reached bool
	e.Await("txn", "ended or left", func(t *api.Transaction) bool {
		select {
		case <-stopped:
			reached = true
		default:
		}
		return reached || t.Status.Phase.Terminal()
	})
	first.Load().Stop()
	if reached {
		assert.LessOrEqual(t, after.Load(), inHand.Load(), "no step is begun after Janus was told to stop")
		next, _ := harness.Through(line)
		e.Start(next)
	}
	w.check(t, e, line, e.Ended("txn"), before)
	return reached
}
