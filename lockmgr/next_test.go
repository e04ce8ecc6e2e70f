package lockmgr

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/internal/sharedlease"
)

// Readers that come one after the other would starve who wants the lock alone. Those that come
// after it wait, and the last of the others leaves the lock to it.
func TestAWriterComesBeforeReadersThatComeLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	writer, _ := w.process()
	key := w.key("web")
	locks := w.acquire(m, holder("a"), shared(key))
	w.acquire(m, holder("b"), shared(key))
	w.refused(writer, waiting("c"), key)
	w.sharedBy(locks[0], "c", "a", "b")
	late := w.refused(m, waiting("d"), shared(key))
	require.Equal(t, HeldError{Key: shared(key), Lease: locks[0].String(), Holder: "c", Shared: true, Waits: true, Until: ttl}, late)
	require.Contains(t, late.Error(), `"c" comes first at Lease `+locks[0].String())
	w.step(ttl / 2)
	require.NoError(t, m.Keep(t.Context(), holder("a"), locks), "who has it keeps it")
	w.refused(writer, waiting("c"), key)
	w.release(m, "a", shared(key))
	w.refused(writer, waiting("c"), key)
	w.release(m, "b", shared(key))
	w.sharedBy(locks[0], "c")
	w.refused(m, waiting("d"), shared(key))
	w.acquire(writer, waiting("c"), key)
	w.heldBy(w.home(key), "c")
	w.refused(m, waiting("d"), shared(key))
	w.release(writer, "c", key)
	w.acquire(m, waiting("d"), shared(key))
	w.sharedBy(locks[0], "", "d")
}

// A writer gets its turn whatever number of readers come and go, after those that were there.
func TestAStreamOfReadersDoesNotStarveAWriter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	writer, _ := w.process()
	key := w.key("web")
	const n = 10
	name := func(i int) string { return "reader-" + string(rune('a'+i%n)) }
	for i := range n {
		w.acquire(m, waiting(name(i)), shared(key))
	}
	locks := []Lock{lockAt(shared(key), w.home(key))}
	for i := range n {
		w.refused(writer, waiting("writer"), key)
		w.step(ttl / 4)
		for k := i; k < n; k++ {
			require.NoError(t, m.Keep(t.Context(), waiting(name(k)), locks))
		}
		w.refused(m, waiting("later-"+name(i)), shared(key))
		w.release(m, name(i), shared(key))
	}
	w.acquire(writer, waiting("writer"), key)
	for i := range n {
		w.refused(m, waiting("later-"+name(i)), shared(key))
	}
}

// A writer that has gone keeps readers out only for as long as its lock would have lasted.
func TestANextThatIsOverIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	writer, _ := w.process()
	key := w.key("web")
	locks := w.acquire(m, holder("a"), shared(key))
	w.refused(writer, waiting("c"), key)
	w.refused(m, waiting("b"), shared(key))
	w.step(ttl - time.Second)
	require.NoError(t, m.Keep(t.Context(), holder("a"), locks))
	require.Equal(t, time.Second, w.refused(m, waiting("b"), shared(key)).Until)
	w.step(time.Second)
	w.acquire(m, waiting("b"), shared(key))
	w.sharedBy(locks[0], "", "a", "b")
}

func TestANextThatHasEndedIsForgottenAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	key := w.key("web")
	locks := w.acquire(m, holder("a"), shared(key))
	w.refused(m, waiting("c"), key)
	h, ended := waiting("d"), ""
	h.Ended = func(_ context.Context, lease *coordinationv1.Lease) bool { return holderOf(lease) == ended }
	w.refused(m, h, shared(key))
	w.refused(m, h, key)
	w.sharedBy(locks[0], "c", "a")
	ended = "c"
	require.Equal(t, "a", w.refused(m, h, key).Holder)
	w.sharedBy(locks[0], "d", "a")
	h.Identity, ended = "e", "d"
	w.acquire(m, h, shared(key))
	w.sharedBy(locks[0], "", "a", "e")
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
	h := waiting("c")
	h.Ended = func(_ context.Context, lease *coordinationv1.Lease) bool { return ended[holderOf(lease)] }
	held := w.refused(m, h, key)
	require.Equal(t, "b", held.Holder)
	require.Zero(t, held.Others)
	ended["b"] = true
	w.acquire(m, h, key)
}

// A writer that gives up removes its entry, and the Lease with it if there is no other.
func TestAWriterThatGivesUpIsNotTheNext(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"in-one-process": false, "in-another": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m, _ := w.process()
			key := w.key("web")
			locks := w.acquire(m, holder("a"), shared(key))
			w.refused(m, waiting("c"), key)
			by := m
			if restart {
				by, _ = w.process()
				m.Forget("c")
			}
			w.release(by, "c", key)
			w.sharedBy(locks[0], "", "a")
			w.refused(m, waiting("c"), key)
			w.release(m, "a", shared(key))
			w.sharedBy(locks[0], "c")
			w.release(by, "c", key)
			w.noLease(w.home(key))
			m.Forget("c")
			w.remembersNothing(m)
		})
	}
}

// A reader would wait for a writer that waits for that reader at an earlier lock.
func TestAWriterIsTheNextOnlyAtTheFirstLockThatItIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	writer, _ := w.process()
	keys := w.keys(3)
	first := w.acquire(m, holder("a"), shared(keys[0]))
	last := w.acquire(m, holder("b"), shared(keys[2]))
	w.refused(writer, waiting("c"), keys[0], keys[1], keys[2])
	w.sharedBy(first[0], "c", "a")
	w.sharedBy(last[0], "", "b")
	w.noLease(w.home(keys[1]))
	w.acquire(m, holder("a"), shared(keys[0]), shared(keys[2]))
	w.release(m, "a", shared(keys[0]), shared(keys[2]))
	w.refused(writer, waiting("c"), keys[2], keys[0], keys[1])
	w.sharedBy(last[0], "c", "b")
	w.heldBy(w.home(keys[0]), "c")
}

// A holder that does not wait is not waited for, nor one that has lost a lock that it had.
func TestWhoDoesNotWaitIsNotTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	key := w.key("web")
	lost := w.acquire(m, waiting("c"), key)
	w.remove(w.home(key))
	locks := w.acquire(m, holder("a"), shared(key))
	require.Equal(t, "a", w.lost(func() error { m.Distrust("c"); return m.Keep(t.Context(), waiting("c"), lost) }()).Holder)
	w.sharedBy(locks[0], "", "a")
	w.refused(m, holder("d"), key)
	w.sharedBy(locks[0], "", "a")
	late := waiting("e")
	late.Confirm = func(context.Context, bool) error { return errLost }
	tap.counted()
	w.refused(m, late, key)
	require.Equal(t, map[string]int{"GET": 1}, tap.counted(), "it is not wanted any more")
}

// Others write the Lease while it is entered, or the lock becomes free.
func TestANextIsEnteredWhateverOthersWriteMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	writer, tap := w.process()
	key := w.key("web")
	locks := w.acquire(m, holder("a"), shared(key))
	tap.on(rule{method: "PUT", before: func() { w.acquire(m, holder("b"), shared(key)) }})
	require.Equal(t, ttl/3, w.refused(writer, waiting("c"), key).Until)
	w.sharedBy(locks[0], "c", "a", "b")
	w.release(writer, "c", key)

	tap.on(rule{method: "PUT", before: func() {
		w.release(m, "a", shared(key))
		w.release(m, "b", shared(key))
	}})
	require.Equal(t, time.Second, w.refused(writer, waiting("c"), key).Until, "it can be had")
	w.noLease(w.home(key))
	w.acquire(writer, waiting("c"), key)
}

// A reader has seen no writer, and one is there when it writes.
func TestAReaderDoesNotOvertakeAWriterThatComesMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	writer, _ := w.process()
	key := w.key("web")
	locks := w.acquire(writer, holder("a"), shared(key))
	tap.on(rule{method: "PUT", before: func() { w.refused(writer, waiting("c"), key) }})
	require.Equal(t, "c", w.refused(m, holder("b"), shared(key)).Holder)
	w.sharedBy(locks[0], "c", "a")
	tap.on(rule{method: "GET", before: func() {
		w.release(writer, "a", shared(key))
		w.acquire(writer, waiting("c"), key)
	}})
	require.Equal(t, "c", w.refused(m, holder("b"), shared(key)).Holder)
	w.heldBy(w.home(key), "c")
}

// The last reader leaves, and another joins before its request lands.
func TestALastReaderThatIsNotTheLastAnyMoreDeletesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	other, _ := w.process()
	key := shared(w.key("web"))
	locks := w.acquire(m, holder("a"), key)
	tap.on(rule{method: "DELETE", before: func() { w.acquire(other, holder("b"), key) }})
	w.release(m, "a", key)
	w.sharedBy(locks[0], "", "b")
}

// An edited list does no harm: the Lease has a holder of a strange name then, and expires.
func TestAListThatCannotBeReadExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	key := w.key("web")
	locks := w.acquire(m, holder("a"), shared(key))
	w.change(w.home(key), func(l *coordinationv1.Lease) {
		metav1.SetMetaDataAnnotation(&l.ObjectMeta, sharedlease.AnnotationReaders, "[")
	})
	require.Equal(t, sharedlease.Holder, w.refused(m, waiting("c"), key).Holder)
	require.Equal(t, sharedlease.Holder, w.refused(m, waiting("b"), shared(key)).Holder)
	m.Distrust("a")
	require.Equal(t, sharedlease.Holder, w.lost(m.Keep(t.Context(), holder("a"), locks)).Holder)
	w.step(ttl)
	w.acquire(m, waiting("b"), shared(key))
	w.sharedBy(locks[0], "", "b")
}

// A holder that waits holds no lock after the one it waits for: a writer there could wait for it for ever.
func TestAnEntryThatCannotBeGivenBackIsGivenBackLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	m.limits.attempts = 2
	other, _ := w.process()
	keys := w.keys(2)
	w.acquire(other, holder("x"), keys[0])
	locks := w.acquire(other, holder("y"), shared(keys[1]))
	joined := false
	tap.on(rule{method: "GET", path: keys[0].LeaseName(), before: func() {
		for joined = false; !joined; time.Sleep(time.Millisecond) {
			joined = isOurs(w.lease(w.home(keys[1])), "a")
		}
		for range 2 {
			tap.on(rule{method: "PUT", path: keys[1].LeaseName(), before: func() { w.touch(w.home(keys[1])) }})
		}
	}})
	h := waiting("a")
	_, err := m.Acquire(t.Context(), h, []Key{keys[0], shared(keys[1])})
	require.ErrorIs(t, err, errContended)
	require.True(t, isHeld(err))
	w.sharedBy(locks[0], "", "a", "y")
	w.refused(m, h, keys[0], shared(keys[1]))
	w.sharedBy(locks[0], "", "y")
}
