package lockmgr

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestAcquireTakesEachLockOnceInOrderForOneCreateEachAndOneList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	keys := w.keys(20)
	given := append(slices.Clone(keys), keys[3], keys[7])
	slices.Reverse(given)

	locks, err := m.Acquire(t.Context(), holder("a"), given)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"POST": 20, "LIST": 1}, tap.counted())
	require.Len(t, locks, 20)
	for i, lock := range locks {
		require.Equal(t, Lock{keys[i], w.namespace, keys[i].LeaseName()}, lock)
		w.heldBy(lock.place(), "a")
	}
	require.LessOrEqual(t, tap.highest, 8)
	require.Greater(t, tap.highest, 1, "side by side")

	again, err := m.Acquire(t.Context(), holder("a"), given)
	require.NoError(t, err)
	require.Equal(t, locks, again)
	require.Empty(t, tap.counted(), "fresh locks cost nothing")
}

func TestAcquireInTheOwnNamespaceNeedsNoList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	locks := w.acquire(m, holder("a"), clusterRole("system:foo"), deployment(w.own, "janusd"))
	require.Equal(t, map[string]int{"POST": 2}, tap.counted())
	for _, lock := range locks {
		require.Equal(t, w.own, lock.Namespace)
		require.NotContains(t, w.lease(lock.place()).Labels, LabelStandsInFor)
	}
}

func TestALeaseSaysWhoHoldsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	h := holder("txn/uid-1")
	h.TTL = 2500 * time.Millisecond
	h.Labels = map[string]string{"janus.io/transaction": "release"}
	h.Annotations = map[string]string{"janus.io/target": "deployments.apps web"}
	h.Owner = w.owner("release")
	h.OwnerNamespace = w.namespace
	locks := w.acquire(m, h, w.key("web"), clusterRole("reader"))

	lease := w.lease(locks[0].place())
	require.Equal(t, h.Labels, lease.Labels)
	require.Equal(t, h.Annotations, lease.Annotations)
	require.Equal(t, []metav1.OwnerReference{*h.Owner}, lease.OwnerReferences)
	require.Equal(t, "txn/uid-1", holderOf(lease))
	require.EqualValues(t, 3, *lease.Spec.LeaseDurationSeconds)
	require.EqualValues(t, 0, *lease.Spec.LeaseTransitions)
	require.True(t, lease.Spec.AcquireTime.Equal(&metav1.MicroTime{Time: w.clock.Now()}))
	require.True(t, lease.Spec.RenewTime.Equal(&metav1.MicroTime{Time: w.clock.Now()}))
	require.Empty(t, w.lease(locks[1].place()).OwnerReferences, "an owner in another namespace would make it garbage")
}

func TestALockThatIsHeldIsRefusedWithItsHolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, second := range map[string]func(*Manager) *Manager{
		"in one process":   func(m *Manager) *Manager { return m },
		"in two processes": func(*Manager) *Manager { m, _ := w.process(); return m },
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			m, _ := w.process()
			since := w.clock.Now()
			locks := w.acquire(m, holder("a"), w.key("web"))
			w.step(time.Second)
			require.NoError(t, m.Keep(t.Context(), holder("a"), locks))
			held := w.refused(second(m), holder("b"), w.key("web"))
			require.True(t, since.Equal(held.Since), "%s, and not when it was renewed: %s", since, held.Since)
			require.Equal(t, ttl, held.Lasts)
			require.Equal(t, w.home(w.key("web")).String(), held.Lease)
			require.Equal(t, "a", held.Holder)
			require.Equal(t, ttl, held.Until)
			require.NoError(t, m.Release(t.Context(), holder("a"), []Key{w.key("web")}))
		})
	}
}

func TestLocksBeforeTheRefusedOneStayAndThoseAfterItAreGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, _ := w.process()
	keys := w.keys(12)
	w.acquire(other, holder("other"), keys[4], keys[6])
	m, tap := w.process()

	locks, err := m.Acquire(t.Context(), holder("a"), keys)
	var held *HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, keys[4], held.Key, "the first in order")
	require.Len(t, locks, 4)
	for i, key := range keys {
		switch {
		case i < 4:
			w.heldBy(w.home(key), "a")
		case i == 4, i == 6:
			w.heldBy(w.home(key), "other")
		default:
			w.noLease(w.home(key))
		}
	}

	// Waiting is cheap: what is held costs nothing, what is waited for one look,
	// and the others are not tried.
	tap.counted()
	w.refused(m, holder("a"), keys[4], keys...)
	require.Equal(t, map[string]int{"GET": 1}, tap.counted())
	require.NoError(t, other.Release(t.Context(), holder("other"), keys))
	w.acquire(m, holder("a"), keys...)
}

func TestALockHeldFromBeforeIsGivenBackIfAnEarlierOneIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	keys := w.keys(3)
	w.acquire(m, holder("a"), keys[2])
	w.acquire(m, holder("other"), keys[1])
	w.refused(m, holder("a"), keys[1], keys[2])
	w.noLease(w.home(keys[2]))
	require.NoError(t, m.Release(t.Context(), holder("other"), keys))
	w.acquire(m, holder("a"), keys...)
}

func TestAfterACrashTheOwnLeaseIsOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _ := w.process()
	w.acquire(first, holder("a"), w.key("web"))
	before := w.lease(w.home(w.key("web")))

	w.step(time.Hour)
	second, tap := w.process()
	w.acquire(second, holder("a"), w.key("web"))
	require.Equal(t, map[string]int{"POST": 1, "GET": 1, "PUT": 1, "LIST": 1}, tap.counted())
	after := w.lease(w.home(w.key("web")))
	require.Equal(t, before.UID, after.UID)
	require.Equal(t, before.Spec.AcquireTime, after.Spec.AcquireTime)
	require.Equal(t, before.Spec.LeaseTransitions, after.Spec.LeaseTransitions)
	require.True(t, after.Spec.RenewTime.Equal(&metav1.MicroTime{Time: w.clock.Now()}))
}

func TestAcquireRenewsWhatHasGrownOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	w.acquire(m, holder("a"), w.keys(3)...)
	tap.counted()
	w.step(ttl/3 - time.Millisecond)
	w.acquire(m, holder("a"), w.keys(3)...)
	require.Empty(t, tap.counted(), "more than two thirds are left")
	w.step(time.Millisecond)
	w.acquire(m, holder("a"), w.keys(3)...)
	require.Equal(t, map[string]int{"PUT": 3}, tap.counted())
	w.acquire(m, holder("a"), w.keys(3)...)
	require.Empty(t, tap.counted(), "the other place stays ruled out")
}

func TestAcquireTakesWhatWasLostMeanwhileLikeAnyOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	key := w.key("web")
	w.acquire(m, holder("a"), key)
	w.remove(w.home(key))
	other, _ := w.process()
	w.acquire(other, holder("b"), key)
	w.step(ttl)
	held := w.refused(m, holder("a"), key)
	require.Equal(t, "b", held.Holder)
}

func TestALostAnswerToACreateIsResolvedByTheNextAcquire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	tap.on(rule{method: "POST", lose: true})
	locks, err := m.Acquire(t.Context(), holder("a"), []Key{w.key("web")})
	require.ErrorIs(t, err, errLost)
	require.ErrorContains(t, err, w.home(w.key("web")).String())
	require.Empty(t, locks)
	w.heldBy(w.home(w.key("web")), "a")
	w.acquire(m, holder("a"), w.key("web"))
}

func TestALostAnswerToATakeoverIsResolvedByTheNextAcquire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	w.write(w.home(w.key("web")), withHolder("", nil))
	tap.on(rule{method: "PUT", lose: true})
	_, err := m.Acquire(t.Context(), holder("a"), []Key{w.key("web")})
	require.ErrorIs(t, err, errLost)
	w.acquire(m, holder("a"), w.key("web"))
	require.EqualValues(t, 1, *w.lease(w.home(w.key("web"))).Spec.LeaseTransitions)
}

func TestALostAnswerToTheListLeavesTheLockUnsettled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	tap.on(rule{method: "LIST", lose: true})
	locks, err := m.Acquire(t.Context(), holder("a"), []Key{w.key("web")})
	require.ErrorIs(t, err, errLost)
	require.Empty(t, locks, "not held before the stand-in is ruled out")
	tap.counted()
	w.acquire(m, holder("a"), w.key("web"))
	require.Equal(t, map[string]int{"LIST": 1}, tap.counted())
}

func TestAConflictIsLookedAtAgainAndBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	place := w.home(w.key("web"))
	w.write(place, withHolder("", nil))
	m, tap := w.process()
	tap.on(rule{method: "PUT", before: func() { w.touch(place) }})
	w.acquire(m, holder("a"), w.key("web"))
	require.Equal(t, map[string]int{"POST": 1, "GET": 2, "PUT": 2, "LIST": 1}, tap.counted())
	require.NoError(t, m.Release(t.Context(), holder("a"), []Key{w.key("web")}))

	w.write(place, withHolder("", nil))
	tap.counted()
	tap.on(rule{method: "PUT", before: func() { w.touch(place) }, again: true})
	held := w.refused(m, holder("a"), w.key("web"))
	require.Equal(t, time.Second, held.Until)
	require.Equal(t, m.limits.attempts, tap.counted()["PUT"])
}

func TestALeaseThatVanishesBetweenOurReadAndOurWriteIsNotResurrected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	place := w.home(w.key("web"))
	w.write(place, withHolder("", nil))
	m, tap := w.process()
	tap.on(rule{method: "PUT", before: func() { w.remove(place) }})
	w.acquire(m, holder("a"), w.key("web"))
	require.Equal(t, map[string]int{"POST": 2, "GET": 2, "PUT": 1, "LIST": 1}, tap.counted())
	require.EqualValues(t, 0, *w.lease(place).Spec.LeaseTransitions, "it was created")
}

func TestALeaseThatWasReplacedBetweenOurReadAndOurWriteIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	place := w.home(w.key("web"))
	w.write(place, withHolder("", nil))
	m, tap := w.process()
	tap.on(rule{method: "PUT", before: func() {
		w.remove(place)
		w.write(place, withHolder("other", ptr.To[int32](30)))
	}})
	require.Equal(t, "other", w.refused(m, holder("a"), w.key("web")).Holder)
}

func TestAnErrorOfTheAPIServerIsReturnedAndKeepsWhatIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process(func(o *Options) { o.Parallel = 1 })
	tap.on(rule{method: "POST", skip: 2, lose: true})
	locks, err := m.Acquire(t.Context(), holder("a"), w.keys(5))
	require.ErrorIs(t, err, errLost)
	require.Len(t, locks, 2)
	require.Equal(t, map[string]int{"POST": 3, "LIST": 1}, tap.counted(), "nothing is begun after a failure")
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	_, err := m.Acquire(cancelled(t), holder("a"), w.keys(3))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, tap.counted())
	w.noLeases(w.namespace)
}
