package lockmgr

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/internal/sharedlease"
)

// shared is a key as a reader locks it.
func shared(key Key) Key {
	key.Shared = true
	return key
}

// waiting is a holder that waits for what it is refused.
func waiting(identity string) Holder {
	h := holder(identity)
	h.Waits = true
	return h
}

// sharedBy wants a Lease to have these readers, and that next.
func (w *world) sharedBy(lease Lock, next string, readers ...string) {
	w.t.Helper()
	found := w.lease(lease.place())
	require.Equal(w.t, sharedlease.Holder, holderOf(found))
	require.ElementsMatch(w.t, readers, sharedlease.By(found))
	require.Equal(w.t, next, sharedlease.NextOf(found))
}

func (w *world) release(m *Manager, identity string, keys ...Key) {
	w.t.Helper()
	require.NoError(w.t, m.Release(w.t.Context(), holder(identity), keys))
}

func TestReadersShareALockAndKeepWritersOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _ := w.process()
	second, _ := w.process()
	key := w.key("web")
	locks := w.acquire(first, holder("a"), shared(key))
	require.Equal(t, locks[0].place(), w.acquire(second, holder("b"), shared(key))[0].place())
	w.sharedBy(locks[0], "", "a", "b")
	held := w.refused(first, holder("c"), key)
	require.Equal(t, HeldError{Key: key, Lease: locks[0].String(), Holder: "a", Others: 1, Shared: true, Until: ttl, wanted: held.wanted}, held)
	require.Contains(t, held.Error(), `has holder "a" and 1 more for up to 30s`)

	w.release(second, "b", shared(key))
	held = w.refused(second, holder("c"), key)
	require.Equal(t, "a", held.Holder)
	require.Zero(t, held.Others)
	require.NoError(t, first.Keep(t.Context(), holder("a"), locks))
	w.release(first, "a", shared(key))
	w.noLease(w.home(key))
	w.acquire(second, holder("c"), key)
	require.Equal(t, "c", w.refused(first, holder("a"), shared(key)).Holder, "a writer keeps readers out")
	w.release(second, "c", key)
	w.release(first, "a", shared(key))
	first.Forget("c")
	w.remembersNothing(first)
	w.remembersNothing(second)
}

// Of a target that a holder reads and writes it has the lock alone.
func TestAReaderThatIsAWriterTooHasTheLockAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	key := w.key("web")
	w.acquire(m, holder("a"), shared(key), key)
	w.heldBy(w.home(key), "a")
	w.release(m, "a", key)
	w.acquire(m, holder("b"), shared(key))
	w.acquire(m, holder("b"), key)
	w.heldBy(w.home(key), sharedlease.Holder)
	m.Distrust("b")
	w.acquire(m, holder("b"), key)
	w.heldBy(w.home(key), "b")
}

// What nobody shares costs what it did. A reader that joins costs a create, a read and a write, and
// a writer that waits a write more than one that waits for another writer, once in a third of its time.
func TestWhatSharedLocksCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, one := w.process()
	second, two := w.process()
	key := w.key("web")
	costs := func(tap *wire, want map[string]int) {
		t.Helper()
		require.Equal(t, want, tap.counted())
	}
	locks := w.acquire(first, holder("a"), shared(key))
	costs(one, map[string]int{"POST": 1, "LIST": 1})
	w.acquire(second, holder("b"), shared(key))
	costs(two, map[string]int{"POST": 1, "GET": 1, "PUT": 1, "LIST": 1})
	require.NoError(t, first.Keep(t.Context(), holder("a"), locks))
	costs(one, map[string]int{})

	w.refused(second, waiting("c"), key)
	costs(two, map[string]int{"POST": 1, "GET": 1, "PUT": 1})
	w.step(ttl/3 - time.Second)
	w.refused(second, waiting("c"), key)
	costs(two, map[string]int{"GET": 1})
	w.step(time.Second)
	require.Equal(t, ttl/3, w.refused(second, waiting("c"), key).Until, "by then it is to say again that it waits")
	costs(two, map[string]int{"GET": 1, "PUT": 1})
	require.NoError(t, first.Keep(t.Context(), holder("a"), locks))
	costs(one, map[string]int{"PUT": 2, "GET": 1})
	w.step(ttl / 3)
	require.NoError(t, first.Keep(t.Context(), holder("a"), locks))
	costs(one, map[string]int{"PUT": 1})
	w.release(second, "b", shared(key))
	costs(two, map[string]int{"PUT": 2, "GET": 1})
}

// What others write into the Lease does not renew an entry.
func TestAReaderExpiresThoughOthersRenewTheLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	crashed, _ := w.process()
	alive, _ := w.process()
	writer, _ := w.process()
	key := w.key("web")
	old := w.acquire(crashed, holder("a"), shared(key))
	locks := w.acquire(alive, holder("b"), shared(key))
	w.refused(writer, waiting("c"), key)
	w.step(ttl / 2)
	require.NoError(t, alive.Keep(t.Context(), holder("b"), locks))
	require.Equal(t, 1, w.refused(writer, waiting("c"), key).Others)
	w.step(ttl / 2)
	require.NoError(t, alive.Keep(t.Context(), holder("b"), locks))
	held := w.refused(writer, waiting("c"), key)
	require.Equal(t, "b", held.Holder, "the time of a is over, and that of b is not")
	require.Zero(t, held.Others)
	w.release(alive, "b", shared(key))
	w.acquire(writer, waiting("c"), key)
	lease := w.lease(w.home(key))
	require.Empty(t, lease.Annotations)
	require.EqualValues(t, 1, *lease.Spec.LeaseTransitions)
	require.Equal(t, "c", w.lost(crashed.Keep(t.Context(), holder("a"), old)).Holder)
	w.release(crashed, "a", shared(key))
	w.heldBy(w.home(key), "c")
}

// Entries are told apart by what they were written over, and not by what a clock says.
func TestAReaderThatComesBackIsAnotherOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := newWorld(t) // Its clock stands still.
	coming, _ := w.process(func(o *Options) { o.Clock = slow.clock })
	staying, _ := w.process()
	writer, _ := w.process()
	key := w.key("web")
	w.acquire(coming, holder("a"), shared(key))
	w.acquire(staying, holder("b"), shared(key))
	w.refused(writer, holder("c"), key)
	w.step(ttl - time.Second)
	w.release(coming, "a", shared(key))
	w.acquire(coming, holder("a"), shared(key))
	w.release(staying, "b", shared(key))
	w.step(time.Second)
	require.Equal(t, ttl, w.refused(writer, holder("c"), key).Until)
}

// Another process of a holder finds its entry, keeps it, and releases it and no other.
func TestAnEntryIsFoundAgainAfterACrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _ := w.process()
	other, _ := w.process()
	key := w.key("web")
	locks := w.acquire(first, holder("a"), shared(key))
	w.acquire(other, holder("b"), shared(key))
	second, _ := w.process()
	require.NoError(t, second.Keep(t.Context(), holder("a"), locks))
	third, _ := w.process()
	w.acquire(third, holder("a"), shared(key))
	w.sharedBy(locks[0], "", "a", "b")
	fourth, _ := w.process()
	w.release(fourth, "a", shared(key))
	w.sharedBy(locks[0], "", "b")
	require.NoError(t, second.Keep(t.Context(), holder("a"), locks))
	second.Distrust("a")
	require.NoError(t, second.Keep(t.Context(), holder("a"), locks), "nobody else has had it alone since")
	w.sharedBy(locks[0], "", "a", "b")
}

// A process that hung gives back what it has taken, and not what another one has written since.
func TestWhatAnotherProcessHasRenewedIsNotGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hung, tap := w.process()
	other, _ := w.process()
	next, _ := w.process()
	keys := w.keys(2)
	w.acquire(other, holder("x"), keys[0])
	w.acquire(other, holder("y"), shared(keys[1]))
	locks := []Lock{lockAt(shared(keys[1]), w.home(keys[1]))}
	// It joins keys[1] first, for its try of keys[0] takes longer.
	tap.on(rule{method: "GET", path: keys[0].LeaseName(), before: func() {
		for !isOurs(w.lease(w.home(keys[1])), "a") {
			time.Sleep(time.Millisecond)
		}
		require.NoError(t, next.Keep(t.Context(), holder("a"), locks))
	}})
	w.refused(hung, holder("a"), keys[0], shared(keys[1]))
	w.sharedBy(locks[0], "", "a", "y")

	// Nothing hung, and the lock is left.
	w.release(next, "a", keys[0], shared(keys[1]))
	w.refused(hung, holder("a"), keys[0], shared(keys[1]))
	w.sharedBy(locks[0], "", "y")
}

// The Lease is garbage when all are gone, and not when one is.
func TestALeaseOfReadersIsOwnedByAllOfThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	key := w.key("web")
	owned := func(identity string) Holder {
		h := waiting(identity)
		h.Owner, h.OwnerNamespace = w.owner(identity), w.namespace
		h.Labels, h.Annotations, h.SharedLabels = map[string]string{"of": identity}, map[string]string{"of": identity}, map[string]string{"of": "all"}
		return h
	}
	a, b, c := owned("a"), owned("b"), owned("c")
	owners := func(want ...Holder) {
		t.Helper()
		var refs []metav1.OwnerReference
		for _, h := range want {
			refs = append(refs, *h.Owner)
		}
		require.Equal(t, refs, w.lease(w.home(key)).OwnerReferences)
	}
	w.acquire(m, a, shared(key))
	owners(a)
	w.acquire(m, b, shared(key))
	owners(a, b)
	w.refused(m, c, key)
	owners(a, b, c)
	lease := w.lease(w.home(key))
	require.Equal(t, map[string]string{"of": "all"}, lease.Labels)
	require.NotContains(t, lease.Annotations, "of")
	require.NoError(t, m.Release(t.Context(), c, []Key{key}))
	elsewhere := holder("d")
	w.acquire(m, elsewhere, shared(key))
	owners()
	require.NoError(t, m.Release(t.Context(), elsewhere, []Key{key}))
	owners(a, b)
	require.NoError(t, m.Release(t.Context(), a, []Key{key}))
	owners(b)
}

// A list has an end: annotations have.
func TestWhoComesWhenTooManyShareALockWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	m.limits.readers = 2
	key := shared(w.key("web"))
	w.acquire(m, holder("a"), key)
	locks := w.acquire(m, holder("b"), key)
	held := w.refused(m, holder("c"), key)
	require.Equal(t, HeldError{Key: key, Lease: w.home(key).String(), Holder: "a", Others: 1, Shared: true, Until: time.Second}, held)
	w.step(ttl / 2)
	require.NoError(t, m.Keep(t.Context(), holder("b"), locks))
	w.refused(m, holder("c"), key)
	w.step(ttl / 2)
	w.acquire(m, holder("c"), key)
	w.sharedBy(locks[0], "", "b", "c")
}
