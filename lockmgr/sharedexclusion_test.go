package lockmgr

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/internal/objectid"
)

// A ledger knows who has which lock, apart from all Leases.
type ledger struct {
	mu      sync.Mutex
	readers map[objectid.ID]int
	writers map[objectid.ID]int
	// together is how many readers were seen to have a lock at once.
	together int
}

// enter says what is wrong with a holder's having the locks.
func (l *ledger) enter(keys []Key) (wrong []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range inOrder(keys) {
		if key.Shared {
			l.readers[key.ID]++
		} else {
			l.writers[key.ID]++
		}
		if l.writers[key.ID] > 1 || l.writers[key.ID] > 0 && l.readers[key.ID] > 0 {
			wrong = append(wrong, fmt.Sprintf("%s has %d writers and %d readers", key, l.writers[key.ID], l.readers[key.ID]))
		}
		l.together = max(l.together, l.readers[key.ID])
	}
	return wrong
}

func (l *ledger) exit(keys []Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range inOrder(keys) {
		if key.Shared {
			l.readers[key.ID]--
		} else {
			l.writers[key.ID]--
		}
	}
}

// Holders in two processes want some of the locks, in any order, some alone and some shared. Their
// clock stands still, so a wait that only ends when something expires does not end.
func TestReadersAndWritersExcludeEachOtherAndAllEnd(t *testing.T) {
	t.Parallel()
	together := 0
	for seed := range uint64(3) {
		w := newWorld(t)
		random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is to be repeated
		together = max(together, w.share(t, random, w.keys(4), func() {}))
	}
	require.Greater(t, together, 1, "nobody has shared a lock")
}

func TestReadersAndWritersExcludeEachOtherWhileTheNamespaceComesIntoBeing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := []Key{deployment(w.later(), "a"), deployment(w.later(), "b"), deployment(w.later(), "c")}
	create := sync.OnceFunc(func() { w.createNamespace(w.later()) })
	w.share(t, rand.New(rand.NewPCG(7, 0)), keys, create) //nolint:gosec // it is to be repeated
	w.noLeases(w.later())
}

// share lets the holders have their turns, and returns how many readers had one lock at most.
func (w *world) share(t *testing.T, random *rand.Rand, keys []Key, afterThree func()) (together int) {
	first, _ := w.process()
	second, _ := w.process()
	book := &ledger{readers: map[objectid.ID]int{}, writers: map[objectid.ID]int{}}
	var turns atomic.Int64
	var all sync.WaitGroup
	released := newBell()
	// The first two are readers of all, so that some share whatever the others do.
	leave := w.meet(t, []*Manager{first, second}, keys, book, released)
	const holders = 10
	for i := range holders {
		m := []*Manager{first, second}[i%2]
		own := slices.Clone(keys)
		random.Shuffle(len(own), func(a, b int) { own[a], own[b] = own[b], own[a] })
		own = own[:1+random.IntN(len(own))]
		for k := range own {
			own[k].Shared = random.IntN(3) > 0
		}
		all.Go(func() {
			h := waiting(fmt.Sprintf("holder-%d", i))
			defer m.Forget(h.Identity)
			if !w.waitFor(t, m, h, own, released) {
				return
			}
			assert.Empty(t, book.enter(own))
			if turns.Add(1) == 3 {
				afterThree()
			}
			locks := w.recorded(t, m, h, own)
			for _, lock := range locks {
				lease, err := w.leases(lock.Namespace).Get(t.Context(), lock.Name, metav1.GetOptions{})
				assert.True(t, err == nil && isOurs(lease, h.Identity), "%s: %v", lock, err)
			}
			assert.NoError(t, m.Keep(t.Context(), h, locks)) //nolint:testifylint // it is not the goroutine of the test
			book.exit(own)
			w.give(t, m, h, own)
			released.ring()
		})
	}
	leave()
	all.Wait()
	require.EqualValues(t, holders, turns.Load())
	w.noLeases(w.namespace)
	w.noLeases(w.own)
	w.remembersNothing(first)
	w.remembersNothing(second)
	return book.together
}

// meet has a reader in each process share all locks, until the function that is returned is called.
func (w *world) meet(t *testing.T, processes []*Manager, keys []Key, book *ledger, released *bell) (leave func()) {
	t.Helper()
	own := slices.Clone(keys)
	for k := range own {
		own[k].Shared = true
	}
	for i, m := range processes {
		require.True(t, w.waitFor(t, m, waiting(fmt.Sprintf("reader-%d", i)), own, released))
		require.Empty(t, book.enter(own))
	}
	return func() {
		for i, m := range processes {
			h := waiting(fmt.Sprintf("reader-%d", i))
			book.exit(own)
			w.give(t, m, h, own)
			released.ring()
			m.Forget(h.Identity)
		}
	}
}

// give gives locks back. Others may write a Lease more often than one Release tries.
func (w *world) give(t *testing.T, m *Manager, h Holder, own []Key) {
	t.Helper()
	for err := m.Release(t.Context(), h, own); err != nil; err = m.Release(t.Context(), h, own) {
		assert.True(t, isOutdated(err), "%v", err)
	}
}

// A stand-in that readers share keeps a writer of the home Lease out, and the other way round.
func TestReadersOfAStandInKeepWritersOfTheHomeLeaseOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	other, _ := w.process()
	key := deployment(w.later(), "web")
	standIn := w.acquire(m, waiting("a"), shared(key))
	w.acquire(other, waiting("b"), shared(key))
	require.Equal(t, w.away(key), standIn[0].place())
	w.refused(other, waiting("c"), key)
	w.sharedBy(standIn[0], "c", "a", "b")
	w.release(other, "c", key)

	w.createNamespace(w.later())
	held := w.refused(other, waiting("c"), key)
	require.Equal(t, "a", held.Holder)
	require.Equal(t, key, held.Key)
	w.noLease(w.home(key))
	w.sharedBy(standIn[0], "", "a", "b")
	require.Equal(t, shared(key), w.refused(m, waiting("d"), shared(key)).Key, "one lock is not shared in two places")
	restarted, _ := w.process()
	require.Equal(t, standIn[0].place(), w.acquire(restarted, waiting("b"), shared(key))[0].place(), "it finds its stand-in")
	w.noLease(w.home(key))
	w.sharedBy(standIn[0], "", "a", "b")
	w.release(m, "a", shared(key))
	w.release(restarted, "b", shared(key))
	w.noLeases(w.own)
	w.acquire(other, waiting("c"), key)
	require.Equal(t, "c", w.refused(m, waiting("d"), shared(key)).Holder)
	w.release(other, "c", key)
	require.Equal(t, w.home(key), w.acquire(m, waiting("d"), shared(key))[0].place())
}

// The entries of readers that are over, and of a writer that was next, go when the home Lease is taken.
func TestAStandInOfReadersThatAreOverIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	key := deployment(w.later(), "web")
	w.acquire(m, waiting("a"), shared(key))
	w.refused(m, waiting("c"), key)
	w.createNamespace(w.later())
	w.refused(m, waiting("d"), shared(key))
	w.step(ttl)
	require.Equal(t, w.home(key), w.acquire(m, waiting("d"), shared(key))[0].place())
	w.noLeases(w.own)
}
