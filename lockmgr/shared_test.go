package lockmgr

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// shared is a key as a reader locks it.
func shared(key Key) Key {
	key.Shared = true
	return key
}

func TestReadersShareALockAndKeepOthersOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _ := w.process()
	second, _ := w.process()
	key := w.key("web")
	locks := w.acquire(first, holder("a"), shared(key))
	w.acquire(second, holder("b"), shared(key))
	w.heldBy(w.home(key), SharedHolder)
	require.Contains(t, []string{"a", "b"}, w.refused(first, holder("c"), key).Holder)

	require.NoError(t, second.Release(t.Context(), holder("b"), []Key{shared(key)}))
	require.Equal(t, "a", w.refused(second, holder("c"), key).Holder)
	require.NoError(t, first.Keep(t.Context(), holder("a"), locks))
	require.NoError(t, first.Release(t.Context(), holder("a"), []Key{shared(key)}))
	w.noLease(w.home(key))
	w.acquire(second, holder("c"), key)
	require.Equal(t, "c", w.refused(first, holder("a"), shared(key)).Holder, "who has it alone keeps readers out")
}

// Of a target that a holder reads and writes, the lock that is not shared counts.
func TestOneWhoSharesAndDoesNotHasTheLockAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	key := w.key("web")
	w.acquire(m, holder("a"), shared(key), key)
	w.heldBy(w.home(key), "a")
}

// What others write into the Lease does not renew an entry.
func TestAnEntryExpiresThoughOthersRenewTheLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	crashed, _ := w.process()
	alive, _ := w.process()
	writer, _ := w.process()
	key := w.key("web")
	w.acquire(crashed, holder("a"), shared(key))
	locks := w.acquire(alive, holder("b"), shared(key))
	w.refused(writer, holder("c"), key)
	w.step(ttl / 2)
	require.NoError(t, alive.Keep(t.Context(), holder("b"), locks))
	w.refused(writer, holder("c"), key)
	w.step(ttl/2 + time.Second)
	require.NoError(t, alive.Keep(t.Context(), holder("b"), locks))
	require.Equal(t, "b", w.refused(writer, holder("c"), key).Holder, "the time of a is over, and that of b is not")
	require.NoError(t, alive.Release(t.Context(), holder("b"), []Key{shared(key)}))
	w.acquire(writer, holder("c"), key)
	w.lost(crashed.Keep(t.Context(), holder("a"), []Lock{lockAt(shared(key), w.home(key))}))
}

// Readers that come one after the other would keep who wants the lock alone out for ever.
func TestWhoWaitsForASharedLockComesBeforeFurtherReaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	writer, _ := w.process()
	key := w.key("web")
	locks := w.acquire(m, holder("a"), shared(key))
	w.refused(writer, holder("c"), key)
	require.Equal(t, "c", w.refused(m, holder("b"), shared(key)).Holder)
	w.step(ttl / 2)
	require.NoError(t, m.Keep(t.Context(), holder("a"), locks), "who has it keeps it")
	require.NoError(t, m.Release(t.Context(), holder("a"), []Key{shared(key)}))
	w.acquire(writer, holder("c"), key)
	w.refused(m, holder("b"), shared(key))
	require.NoError(t, writer.Release(t.Context(), holder("c"), []Key{key}))
	w.acquire(m, holder("b"), shared(key))
}

// Who waited and is gone keeps readers out only for a while.
func TestWhoWaitedForASharedLockIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	writer, _ := w.process()
	key := w.key("web")
	locks := w.acquire(m, holder("a"), shared(key))
	w.refused(writer, holder("c"), key)
	w.refused(m, holder("b"), shared(key))
	w.step(wantedFor / 2)
	require.NoError(t, m.Keep(t.Context(), holder("a"), locks))
	w.refused(m, holder("b"), shared(key))
	w.step(wantedFor / 2)
	w.acquire(m, holder("b"), shared(key))
}

// Another process of a holder finds its entry, and releases it and no other.
func TestAnEntryIsFoundAgainAfterACrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _ := w.process()
	other, _ := w.process()
	key := w.key("web")
	w.acquire(first, holder("a"), shared(key))
	w.acquire(other, holder("b"), shared(key))
	second, _ := w.process()
	require.NoError(t, second.Keep(t.Context(), holder("a"), []Lock{lockAt(shared(key), w.home(key))}))
	require.NoError(t, second.Release(t.Context(), holder("a"), []Key{key}))
	readers, ok := readersOf(w.lease(w.home(key)))
	require.True(t, ok)
	require.Len(t, readers, 1)
	require.Equal(t, "b", readers[0].Holder)
}

// A Lease of readers must not go with one of them, nor be taken for the lock of one.
func TestALeaseOfReadersHasNoOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	key := w.key("web")
	h := holder("a")
	h.Owner, h.OwnerNamespace = w.owner("txn"), w.namespace
	h.Labels, h.SharedLabels = map[string]string{"of": "a"}, map[string]string{"of": "all"}
	w.acquire(m, h, shared(key))
	lease := w.lease(w.home(key))
	require.Empty(t, lease.OwnerReferences)
	require.Equal(t, map[string]string{"of": "all"}, lease.Labels)
}

// One that has ended is not waited for, and another that has not is.
func TestAReaderThatHasEndedIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	key := w.key("web")
	w.acquire(m, holder("a"), shared(key))
	w.acquire(m, holder("b"), shared(key))
	ended := map[string]bool{"a": true}
	h := holder("c")
	h.Ended = func(_ context.Context, lease *coordinationv1.Lease) bool { return ended[holderOf(lease)] }
	require.Equal(t, "b", w.refused(m, h, key).Holder)
	ended["b"] = true
	w.acquire(m, h, key)
}

func TestReadersAndWritersExcludeEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _ := w.process()
	second, _ := w.process()
	keys := w.keys(3)
	var writers, readers [3]atomic.Int64
	var all sync.WaitGroup
	released := newBell()
	for i := range 14 {
		m, reads := first, i%3 > 0
		if i%2 == 1 {
			m = second
		}
		own := make([]Key, len(keys))
		for k := range keys {
			if own[(k+i)%len(keys)] = keys[k]; reads {
				own[(k+i)%len(keys)] = shared(keys[k])
			}
		}
		all.Go(func() {
			h := holder(fmt.Sprintf("holder-%d", i))
			defer m.Forget(h.Identity)
			if !w.waitFor(t, m, h, own, released) {
				return
			}
			for k := range keys {
				if reads {
					readers[k].Add(1)
				} else {
					assert.True(t, writers[k].CompareAndSwap(0, 1), "two have %s alone", keys[k])
				}
			}
			for k := range keys {
				assert.False(t, writers[k].Load() > 0 && readers[k].Load() > 0, "%s is shared, and one has it alone", keys[k])
			}
			assert.NoError(t, m.Keep(t.Context(), h, w.recorded(t, m, h, own)))
			for k := range keys {
				if reads {
					readers[k].Add(-1)
				} else {
					writers[k].Store(0)
				}
			}
			assert.NoError(t, m.Release(t.Context(), h, own))
			released.ring()
		})
	}
	all.Wait()
	w.noLeases(w.namespace)
	w.noLeases(w.own)
	w.remembersNothing(first)
	w.remembersNothing(second)
}

// A stand-in that is shared excludes whoever takes the home Lease alone, and the other way round.
func TestReadersShareTheLockOfATargetWhoseNamespaceComesIntoBeing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	other, _ := w.process()
	key := deployment(w.later(), "web")
	w.acquire(m, holder("a"), shared(key))
	w.acquire(other, holder("b"), shared(key))
	w.createNamespace(w.later())
	require.Contains(t, []string{"a", "b"}, w.refused(other, holder("c"), key).Holder)
	require.NoError(t, m.Release(t.Context(), holder("a"), []Key{shared(key)}))
	require.Equal(t, "b", w.refused(other, holder("c"), key).Holder)
	require.NoError(t, other.Release(t.Context(), holder("b"), []Key{shared(key)}))
	w.acquire(other, holder("c"), key)
	w.noLeases(w.own)
}
