package lockmgr

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"

	"janus.io/janus/internal/fanout"
)

// Operations and results that Options.Observe is called with.
const (
	OperationAcquire = "acquire"
	OperationRenew   = "renew"
	OperationRelease = "release"

	ResultOK    = "ok"
	ResultHeld  = "held"
	ResultLost  = "lost"
	ResultError = "error"
)

// Options say how a Manager works.
type Options struct {
	// Namespace is the Manager's own namespace, which must exist. Leases of
	// targets without a namespace, or in one that does not exist, are there.
	// All Managers of a cluster must agree on it, or they do not exclude each
	// other on those targets.
	Namespace string
	// Clock defaults to the real one.
	Clock clock.PassiveClock
	// Parallel is how many requests one call has in flight; it defaults to 8.
	Parallel int
	// Observe, if set, is called when an operation on one lock that needed
	// requests has ended, from several goroutines. Both arguments are from
	// the constants above.
	Observe func(operation, result string)
}

// limits bound what would otherwise go on for as long as another client
// interferes.
type limits struct {
	// attempts is how often one Lease is looked at again because another client
	// changed it between our read and our write.
	attempts int
	// rounds is how often Acquire begins again because a namespace came into
	// being meanwhile.
	rounds int
	// recheck is when to look again at a Lease that is in the way although
	// its time is over.
	recheck time.Duration
	// readers is how many share a Lease at most: all annotations of an object may have 256 KiB
	// together, and an entry has up to 1 KiB. The next reader waits.
	readers int
}

// A Manager acquires, keeps and releases locks for any number of holders. It is
// safe for use by many goroutines, as long as each holder is in the hands of
// one at a time. Holders that share a Manager exclude each other as those of
// two processes do.
type Manager struct {
	client    coordinationv1client.LeasesGetter
	namespace string
	clock     clock.PassiveClock
	parallel  int
	observe   func(operation, result string)
	limits    limits
	memory    *memory
}

// New returns a Manager that uses the client for Leases.
func New(client coordinationv1client.LeasesGetter, opts Options) *Manager {
	m := &Manager{
		client:    client,
		namespace: opts.Namespace,
		clock:     opts.Clock,
		parallel:  opts.Parallel,
		observe:   opts.Observe,
		limits:    limits{attempts: 20, rounds: 3, recheck: time.Second, readers: 200},
		memory:    newMemory(),
	}
	if m.clock == nil {
		m.clock = clock.RealClock{}
	}
	if m.parallel <= 0 {
		m.parallel = 8
	}
	if m.observe == nil {
		m.observe = func(string, string) {}
	}
	return m
}

// A batcher is a client that makes one request of what several goroutines ask together.
type batcher interface {
	Together(ctx context.Context, n int) (joined context.Context, left func())
}

// inOneCall is the holder as what is written in one call is to name it.
func (m *Manager) inOneCall(h Holder) Holder {
	if _, ok := m.client.(batcher); ok && h.stamp.IsZero() {
		h.stamp = m.clock.Now()
	}
	return h
}

// each does a piece of work for each of n locks, side by side.
func (m *Manager) each(ctx context.Context, n int, work func(ctx context.Context, i int)) {
	batch, ok := m.client.(batcher)
	if !ok || n < 2 {
		fanout.Do(m.parallel, n, func(i int) { work(ctx, i) })
		return
	}
	joined, left := batch.Together(ctx, n)
	fanout.Do(n, n, func(i int) {
		defer left()
		work(joined, i)
	})
}

// Forget drops all memory of a holder that has ended. Leases that it still has
// are not released; they expire.
func (m *Manager) Forget(identity string) { m.memory.forget(identity) }

// Distrust notes that another client may have done something with a holder's locks: they
// are looked at before they are taken to be held.
func (m *Manager) Distrust(identity string) { m.memory.blurAll(identity) }

// places are where the Lease of a target can be, its home first: the stand-in
// comes second, if there can be one.
func (m *Manager) places(key Key) []types.NamespacedName {
	name := key.LeaseName()
	own := types.NamespacedName{Namespace: m.namespace, Name: name}
	if key.Namespace == "" || key.Namespace == m.namespace {
		return []types.NamespacedName{own}
	}
	return []types.NamespacedName{{Namespace: key.Namespace, Name: name}, own}
}
