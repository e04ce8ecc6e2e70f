package processes

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// load is a stream of Transactions.
type load struct {
	w            *world
	random       *rand.Rand
	lockTimeouts []string

	mu    sync.Mutex
	sagas []*saga
	stop  context.CancelFunc
	done  chan struct{}
}

// abreast is how many Transactions are under way at a time, and pace how long after
// one the next one comes at the earliest.
const (
	abreast = 8
	pace    = 100 * time.Millisecond
)

// begin makes the hot ConfigMaps, and starts the stream and the foreign writer.
func (w *world) begin(lockTimeouts ...string) {
	w.t.Helper()
	for _, hot := range hots {
		_, err := w.make(w.t.Context(), configMap, object(configMap, hot, data("kept", "kept")))
		require.NoError(w.t, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.load = &load{
		w: w, random: w.random("load"), lockTimeouts: lockTimeouts, stop: cancel, done: make(chan struct{}),
	}
	go w.load.run(ctx)
	w.foreign = w.interfere()
	w.t.Cleanup(func() { cancel(); <-w.load.done; w.foreign.end() })
}

func (l *load) run(ctx context.Context) {
	defer close(l.done)
	for n := 0; ctx.Err() == nil; n++ {
		for ctx.Err() == nil && l.busy() >= abreast {
			breathe(ctx)
		}
		s := newSaga(l.random, l.w.namespace, n, l.lockTimeouts[l.random.IntN(len(l.lockTimeouts))])
		if err := l.submit(ctx, s); err != nil {
			if ctx.Err() == nil {
				l.w.t.Errorf("submit %s: %v", s.name, err)
			}
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(pace):
		}
	}
}

// submit makes the targets of a saga and its Transaction.
func (l *load) submit(ctx context.Context, s *saga) error {
	for _, t := range s.targets {
		if t.initial == nil {
			t.begin(nil)
			continue
		}
		made, err := l.w.make(ctx, t.kind, t.initial)
		if err != nil {
			return err
		}
		t.begin(made)
	}
	// It counts from now on, even if the answer to its creation never comes.
	l.mu.Lock()
	l.sagas = append(l.sagas, s)
	l.mu.Unlock()
	txn := object(kind{api.Kind, api.Resource.Resource}, s.name, map[string]any{"spec": s.spec})
	_, err := l.w.make(context.WithoutCancel(ctx), kind{api.Kind, api.Resource.Resource}, txn)
	return err
}

// make makes an object, across restarts of the API server.
func (w *world) make(ctx context.Context, k kind, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	client := w.Dynamic.Resource(k.resource()).Namespace(w.namespace)
	deadline := time.Now().Add(patience)
	for {
		made, err := client.Create(ctx, obj, metav1.CreateOptions{FieldManager: harness.Manager})
		if apierrors.IsAlreadyExists(err) {
			made, err = client.Get(ctx, obj.GetName(), metav1.GetOptions{})
		}
		if err == nil || ctx.Err() != nil || apierrors.IsInvalid(err) || time.Now().After(deadline) {
			return made, err
		}
		breathe(ctx)
	}
}

// all returns the sagas that were submitted.
func (l *load) all() []*saga {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*saga{}, l.sagas...)
}

// active returns those that have not been seen to end.
func (l *load) active() []*saga {
	var out []*saga
	for _, s := range l.all() {
		if !l.w.history.phase(s.name).Terminal() {
			out = append(out, s)
		}
	}
	return out
}

// busy counts those that go forward. A rollback may have to wait until requests that
// were never answered can land no more, and would hold up the stream.
func (l *load) busy() int {
	n := 0
	for _, s := range l.active() {
		if l.w.history.phase(s.name) != api.PhaseRollingBack {
			n++
		}
	}
	return n
}

// calm waits until the Transactions that are under way now have ended; the stream
// goes on.
func (w *world) calm() {
	w.t.Helper()
	now := w.load.active()
	w.ended(now)
}

// ended waits until some Transactions have ended.
func (w *world) ended(sagas []*saga) {
	w.t.Helper()
	began := time.Now()
	w.until("every Transaction has ended", func(context.Context) bool {
		sagas = slices.DeleteFunc(sagas, func(s *saga) bool { return w.history.phase(s.name).Terminal() })
		if len(sagas) > 0 && time.Since(began) > patience-5*time.Second {
			w.t.Logf("have not ended: %v", w.stuck())
		}
		return len(sagas) == 0
	})
	w.counts.most("milliseconds until all had ended, at most", int(time.Since(began).Milliseconds()))
}

// settle ends the stream, and waits until every Transaction has ended. Then the
// foreign writer stops too, every janusd that runs is told to end, and the watches
// see the rest.
func (w *world) settle() {
	w.t.Helper()
	w.load.stop()
	<-w.load.done
	w.ended(w.load.active())
	w.foreign.end()
	w.cleared()
	for _, j := range w.all() {
		if j.running() {
			w.scrape(j)
			j.stopInOrder(w.t)
		}
	}
	w.history.catchUp()
}

// cleared waits until nothing is left behind: where two janusd work on one
// Transaction, the one that is late lets go of what it took and saved when it sees
// the end.
func (w *world) cleared() {
	w.t.Helper()
	var left []string
	_ = wait.PollUntilContextTimeout(w.t.Context(), 500*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		if now := w.left(context.WithoutCancel(ctx)); ctx.Err() == nil || len(now) == 0 {
			left = now
		}
		return len(left) == 0, nil
	})
	assert.Empty(w.t, left, "this is left behind")
}

// stuck describes the Transactions that have not ended.
func (w *world) stuck() []string {
	var out []string
	for _, s := range w.load.active() {
		w.history.mu.Lock()
		seen := w.history.txns[s.name]
		w.history.mu.Unlock()
		if len(seen) > 0 {
			out = append(out, s.name+" "+harness.Describe(&api.Transaction{Status: seen[len(seen)-1].status}))
		}
	}
	return out
}
