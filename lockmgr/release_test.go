package lockmgr

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"
)

func TestReleaseCostsOneDeleteEachAndLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	keys := append(w.keys(10), clusterRole("system:foo"))
	w.acquire(m, holder("a"), keys...)
	tap.counted()
	require.NoError(t, m.Release(t.Context(), holder("a"), append(keys, keys...)))
	require.Equal(t, map[string]int{"DELETE": 11}, tap.counted())
	w.noLeases(w.namespace)
	w.noLeases(w.own)
	w.remembersNothing(m)
	require.NoError(t, m.Release(t.Context(), holder("a"), keys), "once more is no error")
}

func TestReleaseFindsLocksThatNobodyRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _ := w.process()
	keys := append(w.keys(3), clusterRole("reader"))
	absent := deployment(w.namespace+"-later", "web")
	w.acquire(first, holder("a"), append(keys, absent)...)
	second, tap := w.process()
	require.NoError(t, second.Release(t.Context(), holder("a"), append(keys, absent)))
	// Four of the five locks are not where the lock of an absent namespace is, which is
	// looked at twice.
	require.Equal(t, map[string]int{"GET": 13, "DELETE": 5}, tap.counted())
	w.noLeases(w.namespace)
	w.noLeases(w.own)
}

func TestReleaseFindsTheLeaseOfACreateWithALostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	tap.on(rule{method: "POST", lose: true})
	_, err := m.Acquire(t.Context(), holder("a"), []Key{w.key("web")})
	require.ErrorIs(t, err, errLost)
	require.NoError(t, m.Release(t.Context(), holder("a"), []Key{w.key("web")}))
	w.noLeases(w.namespace)
	w.remembersNothing(m)
}

// A request to delete the Lease that got no answer may have landed, or land later: who
// wants the lock again looks, and writes the Lease, so that the late one is refused.
func TestALockWhoseReleaseGotNoAnswerIsTakenAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	w.acquire(m, holder("a"), w.key("web"))
	tap.on(rule{method: "DELETE", lose: true})
	require.Error(t, m.Release(t.Context(), holder("a"), []Key{w.key("web")}))
	tap.counted()
	w.acquire(m, holder("a"), w.key("web"))
	require.Equal(t, 1, tap.counted()["POST"], "the Lease is there again")
}

func TestReleaseNeverDeletesASuccessorsLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range map[string]struct{ restart, recreated bool }{
		"taken-over-in-place": {}, "taken-over-in-place-and-restarted": {restart: true},
		"created-anew": {recreated: true}, "created-anew-and-restarted": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			m, _ := w.process()
			other, _ := w.process()
			key := w.key(name)
			w.acquire(m, holder("a"), key)
			if c.recreated {
				w.remove(w.home(key))
			} else {
				w.refused(other, holder("b"), key)
				w.step(ttl)
			}
			w.acquire(other, holder("b"), key)
			if c.restart {
				m, _ = w.process()
			}
			require.NoError(t, m.Release(t.Context(), holder("a"), []Key{key}))
			w.heldBy(w.home(key), "b")
			w.remembersNothing(m)
		})
	}
}

func TestReleaseDoesNotDeleteALeaseTakenOverBetweenItsLookAndItsDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _ := w.process()
	other, _ := w.process()
	key := w.key("web")
	w.acquire(first, holder("a"), key)
	w.refused(other, holder("b"), key)
	w.step(ttl)
	second, tap := w.process()
	tap.on(rule{method: "DELETE", before: func() { w.acquire(other, holder("b"), key) }})
	require.NoError(t, second.Release(t.Context(), holder("a"), []Key{key}))
	w.heldBy(w.home(key), "b")
}

func TestReleaseDeletesItsLeaseAlsoAfterSomebodyWroteToIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	key := w.key("web")
	w.acquire(m, holder("a"), key)
	w.touch(w.home(key))
	tap.counted()
	require.NoError(t, m.Release(t.Context(), holder("a"), []Key{key}))
	require.Equal(t, map[string]int{"DELETE": 2, "GET": 1}, tap.counted())
	w.noLease(w.home(key))
}

func TestReleaseOfWhatIsGoneIsDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	later := w.namespace + "-gone"
	w.createNamespace(later)
	keys := []Key{w.key("web"), deployment(later, "web")}
	w.acquire(m, holder("a"), keys...)
	w.remove(w.home(keys[0]))
	w.destroy(later)
	require.NoError(t, m.Release(t.Context(), holder("a"), keys))
	second, _ := w.process()
	require.NoError(t, second.Release(t.Context(), holder("a"), keys))
	w.remembersNothing(m)
}

func TestReleaseJoinsItsErrorsAndCanBeRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	keys := w.keys(3)
	w.acquire(m, holder("a"), keys...)
	tap.on(rule{method: "DELETE", path: keys[0].LeaseName(), lose: true})
	tap.on(rule{method: "DELETE", path: keys[2].LeaseName(), lose: true})
	err := m.Release(t.Context(), holder("a"), keys)
	require.ErrorIs(t, err, errLost)
	require.ErrorContains(t, err, w.home(keys[0]).String())
	require.NotContains(t, err.Error(), w.home(keys[1]).String())
	require.ErrorContains(t, err, w.home(keys[2]).String())
	require.NoError(t, m.Release(t.Context(), holder("a"), keys))
	w.remembersNothing(m)
}

func TestReleaseIsBoundedIfSomebodyKeepsWriting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	key := w.key("web")
	w.acquire(m, holder("a"), key)
	tap.on(rule{method: "DELETE", before: func() { w.touch(w.home(key)) }, again: true})
	require.Error(t, m.Release(t.Context(), holder("a"), []Key{key}))
	require.Equal(t, m.limits.attempts, tap.counted()["DELETE"])
}

func TestMemoryOfWaitingEndsWithTheLastThatWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process(func(o *Options) { o.Parallel = 1 })
	key := w.key("web")
	w.write(w.home(key), withHolder("other", ptr.To[int32](10)))
	for _, identity := range []string{"a", "b", "c", "d"} {
		w.refused(m, holder(identity), key)
		w.refused(m, holder(identity), key)
	}
	require.Len(t, m.memory.seen, 1)
	require.Empty(t, m.memory.held, "what was refused is not in doubt")
	m.Forget("a")
	require.NoError(t, m.Release(t.Context(), holder("b"), []Key{key}))
	require.Len(t, m.memory.seen, 1, "c and d still wait")
	w.step(10 * time.Second)
	w.acquire(m, holder("c"), key)
	require.Equal(t, "c", w.refused(m, holder("d"), key).Holder)
	require.NoError(t, m.Release(t.Context(), holder("c"), []Key{key}))
	w.acquire(m, holder("d"), key)
	require.Empty(t, m.memory.seen)
	m.Forget("d")
	w.remembersNothing(m)
	w.heldBy(w.home(key), "d")
}

// A process that hung while it took locks finds one refused when it wakes up, and gives
// back the others. Another has gone on with the Transaction meanwhile, and relies on them.
func TestAcquireGivesBackNothingThatAnotherProcessHasTakenOver(t *testing.T) {
	t.Parallel()
	for _, later := range []time.Duration{time.Millisecond, 0} {
		w := newWorld(t)
		first, tap := w.process()
		second, _ := w.process()
		keys := w.keys(2)
		w.write(w.home(keys[0]), withHolder("other", ptr.To[int32](10)))
		tap.on(rule{method: "DELETE", before: func() {
			w.step(later)
			w.acquire(second, holder("a"), keys[1])
		}})
		w.refused(first, holder("a"), keys[0], keys...)
		w.heldBy(w.home(keys[1]), "a")
		w.remove(w.home(keys[0]))
		w.acquire(first, holder("a"), keys...)
		w.heldBy(w.home(keys[1]), "a")
	}
}

// Whether a lock is held whose request got no answer is not known, and looking does not
// tell whose doing it was: it is left until it is taken again, expires, or is released.
func TestAcquireGivesBackNothingThatItMayNotHaveTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	keys := w.keys(2)
	w.write(w.home(keys[0]), withHolder("other", ptr.To[int32](10)))
	w.refused(m, holder("a"), keys[0])
	tap.on(rule{method: "POST", lose: true})
	_, err := m.Acquire(t.Context(), holder("a"), keys[1:])
	require.ErrorIs(t, err, errLost)
	tap.counted()
	w.refused(m, holder("a"), keys[0], keys...)
	require.Equal(t, map[string]int{"GET": 1}, tap.counted(), "of the lock that is refused")
	w.heldBy(w.home(keys[1]), "a")
	require.NoError(t, m.Release(t.Context(), holder("a"), keys))
	w.noLease(w.home(keys[1]))
}
