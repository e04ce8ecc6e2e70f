package lockmgr

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A bell wakes all who wait for a holder to give locks back.
type bell struct {
	mu   sync.Mutex
	rang chan struct{}
}

func newBell() *bell { return &bell{rang: make(chan struct{})} }

func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rang
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.rang)
	b.rang = make(chan struct{})
}

func TestManyHoldersInOppositeOrdersExcludeEachOtherAndAllEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exclude(t, 16, w.keys(4), func() {})
}

func TestManyHoldersExcludeEachOtherWhileTheNamespaceComesIntoBeing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := []Key{deployment(w.later(), "a"), deployment(w.later(), "b"), deployment(w.later(), "c")}
	create := sync.OnceFunc(func() { w.createNamespace(w.later()) })
	w.exclude(t, 12, keys, create)
	w.noLeases(w.later())
}

// exclude lets holders in two processes lock all the keys, half of them
// backwards, and wants each to have its turn. afterThree is called when three
// have had it.
func (w *world) exclude(t *testing.T, holders int, keys []Key, afterThree func()) {
	first, _ := w.process()
	second, _ := w.process()
	backwards := slices.Clone(keys)
	slices.Reverse(backwards)
	owners := make([]atomic.Int64, len(keys))
	var turns atomic.Int64
	var all sync.WaitGroup
	released := newBell()
	for i := range holders {
		m, order := first, keys
		if i%2 == 1 {
			m = second
		}
		if i/2%2 == 1 {
			order = backwards
		}
		all.Go(func() {
			h := holder(fmt.Sprintf("holder-%d", i))
			defer m.Forget(h.Identity)
			if !w.waitFor(t, m, h, order, released) {
				return
			}
			for k := range owners {
				assert.True(t, owners[k].CompareAndSwap(0, int64(i+1)), "%s has two holders", keys[k])
			}
			if turns.Add(1) == 3 {
				afterThree()
			}
			assert.NoError(t, m.Keep(t.Context(), h, w.recorded(t, m, h, order)))
			for k := range owners {
				assert.True(t, owners[k].CompareAndSwap(int64(i+1), 0))
			}
			assert.NoError(t, m.Release(t.Context(), h, order))
			released.ring()
		})
	}
	all.Wait()
	require.EqualValues(t, holders, turns.Load())
	w.noLeases(w.own)
	w.remembersNothing(first)
	w.remembersNothing(second)
}

// waitFor acquires the locks, however often it takes.
func (w *world) waitFor(t *testing.T, m *Manager, h Holder, keys []Key, released *bell) bool {
	for {
		wake := released.next()
		_, err := m.Acquire(t.Context(), h, keys)
		if err == nil {
			return true
		}
		var held *HeldError
		if !errors.As(err, &held) {
			t.Errorf("acquire: %v", err)
			return false
		}
		// Anyone who was refused may have been in the way for a moment.
		released.ring()
		select {
		case <-wake:
		case <-t.Context().Done():
			return false
		}
	}
}

// recorded is what Acquire returns for locks that are held.
func (w *world) recorded(t *testing.T, m *Manager, h Holder, keys []Key) []Lock {
	locks, err := m.Acquire(t.Context(), h, keys)
	assert.NoError(t, err)
	return locks
}

func TestParallelBoundsTheRequestsInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, n := range []int{1, 3} {
		m, tap := w.process(func(o *Options) { o.Parallel = n })
		w.acquire(m, holder("a"), w.keys(12)...)
		require.NoError(t, m.Release(t.Context(), holder("a"), w.keys(12)))
		require.LessOrEqual(t, tap.highest, n)
	}
}

func TestObserveIsToldOfEachOperationThatNeededRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	seen := map[string]int{}
	m, tap := w.process(func(o *Options) {
		o.Observe = func(operation, result string) {
			mu.Lock()
			defer mu.Unlock()
			seen[operation+" "+result]++
		}
	})
	told := func(want map[string]int) {
		t.Helper()
		require.Equal(t, want, seen)
		seen = map[string]int{}
	}
	keys := w.keys(3)
	locks := w.acquire(m, holder("a"), keys...)
	told(map[string]int{"acquire ok": 3})
	w.acquire(m, holder("a"), keys...)
	require.NoError(t, m.Keep(t.Context(), holder("a"), locks))
	told(map[string]int{})
	w.refused(m, holder("b"), keys[0])
	told(map[string]int{"acquire held": 1})
	w.step(ttl)
	w.acquire(m, holder("b"), keys[0])
	told(map[string]int{"acquire ok": 1})
	w.lost(m.Keep(t.Context(), holder("a"), locks))
	told(map[string]int{"renew ok": 2, "renew lost": 1})
	tap.on(rule{method: "DELETE", lose: true})
	require.Error(t, m.Release(t.Context(), holder("b"), keys[:1]))
	told(map[string]int{"release error": 1})
	require.NoError(t, m.Release(t.Context(), holder("a"), keys[1:]))
	told(map[string]int{"release ok": 2})
	tap.on(rule{method: "POST", lose: true})
	_, err := m.Acquire(t.Context(), holder("c"), keys[2:])
	require.Error(t, err)
	told(map[string]int{"acquire error": 1})
}
