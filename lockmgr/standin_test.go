package lockmgr

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// later is the name of a namespace that does not exist yet.
func (w *world) later() string { return w.namespace + "-later" }

func TestALockInANamespaceThatDoesNotExistIsAStandIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process(func(o *Options) { o.Parallel = 1 })
	keys := []Key{deployment(w.later(), "a"), deployment(w.later(), "b"), deployment(w.later(), "c")}
	h := holder("a")
	h.Labels = map[string]string{"janus.io/transaction": "t"}
	locks := w.acquire(m, h, keys...)
	require.Equal(t, map[string]int{"POST": 5}, tap.counted(), "one to find out, one each, one to make sure")
	for i, lock := range locks {
		require.Equal(t, w.away(keys[i]), lock.place())
		labels := map[string]string{"janus.io/transaction": "t", LabelStandsInFor: w.later()}
		require.Equal(t, labels, w.lease(lock.place()).Labels)
	}
	require.NotContains(t, h.Labels, LabelStandsInFor, "the caller's map is not touched")
	w.acquire(m, h, keys...)
	require.Empty(t, tap.counted())
	other, _ := w.process()
	require.Equal(t, locks[0].String(), w.refused(other, holder("b"), keys[0]).Lease)
	require.NoError(t, m.Release(t.Context(), h, keys))
	require.Equal(t, map[string]int{"DELETE": 3}, tap.counted())
}

func TestANamespaceThatCannotBeALabelIsHashed(t *testing.T) {
	t.Parallel()
	require.Equal(t, "shop", standInLabel("shop"))
	require.Equal(t, strings.Repeat("a", 63), standInLabel(strings.Repeat("a", 63)))
	require.Len(t, standInLabel(strings.Repeat("a", 64)), hashLength)
	require.Len(t, standInLabel("-"), hashLength)
	w := newWorld(t)
	m, _ := w.process()
	key := deployment(strings.Repeat("a", 64), "web")
	locks := w.acquire(m, holder("a"), key)
	require.Equal(t, standInLabel(key.Namespace), w.lease(locks[0].place()).Labels[LabelStandsInFor])
}

func TestAStandInExcludesAlsoWhenItsNamespaceHasComeIntoBeing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	key := deployment(w.later(), "web")
	locks := w.acquire(m, holder("a"), key)
	w.createNamespace(w.later())

	for _, other := range []func() *Manager{
		func() *Manager { return m },
		func() *Manager { m, _ := w.process(); return m },
	} {
		held := w.refused(other(), holder("b"), key)
		require.Equal(t, locks[0].String(), held.Lease)
		require.Equal(t, "a", held.Holder)
		require.Equal(t, ttl, held.Until)
		w.noLease(w.home(key))
	}
	tap.counted()
	w.step(ttl)
	require.NoError(t, m.Keep(t.Context(), holder("a"), locks))
	require.Equal(t, locks, w.acquire(m, holder("a"), key), "it stays the lock of who has it")
	require.Equal(t, map[string]int{"PUT": 1}, tap.counted())
	require.NoError(t, m.Release(t.Context(), holder("a"), []Key{key}))
	require.Equal(t, w.home(key), w.acquire(m, holder("b"), key)[0].place())
}

func TestOnlyTheLockThatIsStoodInForIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	keys := []Key{deployment(w.later(), "a"), deployment(w.later(), "b"), deployment(w.later(), "c")}
	w.acquire(m, holder("a"), keys[1])
	w.createNamespace(w.later())
	locks, err := m.Acquire(t.Context(), holder("b"), keys)
	var held *HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, keys[1], held.Key)
	require.Equal(t, []Lock{lockAt(keys[0], w.home(keys[0]))}, locks)
	w.noLease(w.home(keys[1]))
	w.noLease(w.home(keys[2]))
}

func TestAfterARestartTheStandInStaysTheLockOfTheTransactionThatMadeTheNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _ := w.process()
	key := deployment(w.later(), "web")
	locks := w.acquire(first, holder("a"), key)
	w.createNamespace(w.later())
	w.step(time.Hour)
	second, tap := w.process()
	require.Equal(t, locks, w.acquire(second, holder("a"), key))
	require.Equal(t, map[string]int{"POST": 1, "LIST": 1, "PUT": 1, "DELETE": 1}, tap.counted())
	w.noLease(w.home(key))
	require.NoError(t, second.Keep(t.Context(), holder("a"), locks))
	require.Empty(t, tap.counted())

	third, _ := w.process()
	require.NoError(t, third.Keep(t.Context(), holder("a"), locks))
	require.NoError(t, third.Release(t.Context(), holder("a"), []Key{key}))
	w.noLeases(w.own)
}

func TestAnExpiredStandInIsDeletedSoThatItsHolderCannotComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	crashed, _ := w.process()
	key := deployment(w.later(), "web")
	locks := w.acquire(crashed, holder("a"), key)
	w.createNamespace(w.later())
	m, _ := w.process()
	w.refused(m, holder("b"), key)
	w.step(ttl - time.Second)
	require.Equal(t, time.Second, w.refused(m, holder("b"), key).Until)
	w.step(time.Second)
	require.Equal(t, w.home(key), w.acquire(m, holder("b"), key)[0].place())
	w.noLease(w.away(key))

	require.Equal(t, "b", w.lost(crashed.Keep(t.Context(), holder("a"), locks)).Holder)
	restarted, _ := w.process()
	require.Equal(t, "b", w.lost(restarted.Keep(t.Context(), holder("a"), locks)).Holder)
	w.noLease(w.away(key))
}

func TestAStandInRenewedBetweenTheListAndItsDeletionIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner, _ := w.process()
	key := deployment(w.later(), "web")
	locks := w.acquire(owner, holder("a"), key)
	w.createNamespace(w.later())
	m, tap := w.process()
	w.refused(m, holder("b"), key)
	w.step(ttl)
	tap.on(rule{method: "DELETE", path: w.own, before: func() {
		require.NoError(t, owner.Keep(t.Context(), holder("a"), locks))
	}})
	require.Equal(t, "a", w.refused(m, holder("b"), key).Holder)
	w.noLease(w.home(key))
	w.heldBy(w.away(key), "a")
}

func TestAnExpiredStandInIsTakenOverWhileTheNamespaceIsAbsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := deployment(w.later(), "web")
	w.write(w.away(key), withHolder("other", ptr.To[int32](10)))
	m, _ := w.process()
	require.Equal(t, 10*time.Second, w.refused(m, holder("a"), key).Until)
	w.step(10 * time.Second)
	w.acquire(m, holder("a"), key)
	require.Equal(t, w.later(), w.lease(w.away(key)).Labels[LabelStandsInFor], "or nobody would find it")
}

// The races. P does not find the namespace and goes for the stand-in; Q comes
// when the namespace is there.

func TestPFindsTheNamespaceThereAfterTakingTheStandIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := []Key{deployment(w.later(), "a"), deployment(w.later(), "b")}
	p, tap := w.process(func(o *Options) { o.Parallel = 1 })
	tap.on(rule{method: "POST", path: w.later(), skip: 1, before: func() { w.createNamespace(w.later()) }})
	locks := w.acquire(p, holder("p"), keys...)
	for i, lock := range locks {
		require.Equal(t, w.home(keys[i]), lock.place())
	}
	w.noLeases(w.own)
	require.NoError(t, p.Release(t.Context(), holder("p"), keys))
	w.noLeases(w.later())
	w.remembersNothing(p)
}

func TestQTakesTheHomeLeaseBeforePTakesTheStandIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := deployment(w.later(), "web")
	p, tap := w.process()
	q, _ := w.process()
	tap.on(rule{method: "POST", path: w.own, before: func() {
		w.createNamespace(w.later())
		w.acquire(q, holder("q"), key)
	}})
	held := w.refused(p, holder("p"), key)
	require.Equal(t, "q", held.Holder)
	require.Equal(t, w.home(key).String(), held.Lease)
	w.noLease(w.away(key))
	w.heldBy(w.home(key), "q")
}

func TestQTakesTheHomeLeaseBetweenPsStandInAndPsCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := deployment(w.later(), "web")
	p, tap := w.process()
	q, _ := w.process()
	tap.on(rule{method: "POST", path: w.later(), skip: 1, before: func() {
		w.createNamespace(w.later())
		require.Equal(t, "p", w.refused(q, holder("q"), key).Holder)
	}})
	require.Equal(t, w.home(key), w.acquire(p, holder("p"), key)[0].place())
	w.noLease(w.away(key))
	w.heldBy(w.home(key), "p")
}

func TestPTakesTheStandInBetweenQsHomeLeaseAndQsCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := deployment(w.later(), "web")
	p, pTap := w.process()
	q, qTap := w.process()
	pTap.on(rule{method: "POST", path: w.own, before: func() {
		w.createNamespace(w.later())
		qTap.on(rule{method: "LIST", before: func() {
			// P's stand-in, as it is in the moment before P's check.
			standIn := newLease(holder("p"), key, w.away(key), w.clock.Now())
			_, err := w.admin.CoordinationV1().Leases(w.own).Create(t.Context(), standIn, metav1.CreateOptions{})
			require.NoError(t, err)
		}})
		require.Equal(t, "p", w.refused(q, holder("q"), key).Holder)
	}})
	require.Equal(t, w.home(key), w.acquire(p, holder("p"), key)[0].place(), "Q has given the home Lease back")
	w.noLease(w.away(key))
}

func TestANamespaceThatIsDeletedUnderALockMovesTheLockToTheStandIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := deployment(w.later(), "web")
	w.createNamespace(w.later())
	m, _ := w.process()
	locks := w.acquire(m, holder("a"), key)
	w.destroy(w.later())
	w.step(ttl)
	require.NoError(t, m.Keep(t.Context(), holder("a"), locks))
	w.heldBy(w.away(key), "a")
	restarted, _ := w.process()
	require.NoError(t, restarted.Keep(t.Context(), holder("a"), locks), "with the place as it was recorded")
	require.NoError(t, restarted.Release(t.Context(), holder("a"), []Key{key}))
	w.noLeases(w.own)

	// Another may have been faster.
	w.acquire(m, holder("b"), key)
	require.Equal(t, "b", w.lost(restarted.Keep(t.Context(), holder("a"), locks)).Holder)
}

func TestATerminatingNamespaceIsATypedError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createNamespace(w.later())
	m, _ := w.process()
	held := deployment(w.later(), "held")
	locks := w.acquire(m, holder("a"), held)
	w.remove(w.home(held))
	w.terminate(w.later())
	key := deployment(w.later(), "web")
	_, err := m.Acquire(t.Context(), holder("a"), []Key{key})
	var terminating *NamespaceTerminatingError
	require.ErrorAs(t, err, &terminating)
	require.Equal(t, key, terminating.Key)
	require.Equal(t, w.later(), terminating.Namespace)
	require.True(t, apierrors.IsForbidden(err))
	require.ErrorContains(t, err, w.later())
	w.step(ttl)
	require.ErrorAs(t, m.Keep(t.Context(), holder("a"), locks), &terminating)
	w.noLeases(w.own)
	m.Forget("a")
	w.remembersNothing(m)
}

func TestANamespaceThatBecomesTerminatingUnderAStandInIsATypedError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := deployment(w.later(), "web")
	m, tap := w.process()
	tap.on(rule{method: "POST", path: w.later(), skip: 1, before: func() {
		w.createNamespace(w.later())
		w.terminate(w.later())
	}})
	_, err := m.Acquire(t.Context(), holder("a"), []Key{key})
	var terminating *NamespaceTerminatingError
	require.ErrorAs(t, err, &terminating)
	w.noLeases(w.own)
	w.remembersNothing(m)
}

func TestALostAnswerToTheCheckLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := deployment(w.later(), "web")
	for name, retry := range map[string]bool{"release at once": false, "acquire again": true} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			m, tap := w.process()
			tap.on(rule{method: "POST", path: w.later(), skip: 1, lose: true, before: func() { w.createNamespace(w.later()) }})
			locks, err := m.Acquire(t.Context(), holder("a"), []Key{key})
			require.ErrorIs(t, err, errLost)
			require.Empty(t, locks)
			w.heldBy(w.home(key), "a")
			if retry {
				require.Equal(t, w.home(key), w.acquire(m, holder("a"), key)[0].place())
				w.noLeases(w.own)
			}
			require.NoError(t, m.Release(t.Context(), holder("a"), []Key{key}))
			w.noLeases(w.own)
			w.noLeases(w.later())
			w.remembersNothing(m)
			w.destroy(w.later())
		})
	}
}

func TestANamespaceThatComesAndGoesIsRefusedInTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := deployment(w.later(), "web")
	m, tap := w.process()
	for range m.limits.rounds {
		// Absent for the first create of a round, and for the second there,
		// with a holder that has the lock.
		tap.on(rule{method: "POST", path: w.later()})
		tap.on(rule{method: "POST", path: w.later(), before: func() {
			w.createNamespace(w.later())
			w.write(w.home(key), withHolder("other", ptr.To[int32](10)))
		}})
		tap.on(rule{method: "DELETE", path: w.own, before: func() { w.destroy(w.later()) }})
	}
	held := w.refused(m, holder("a"), key)
	require.Equal(t, w.home(key).String(), held.Lease)
	require.Equal(t, time.Second, held.Until)
	require.NoError(t, m.Release(t.Context(), holder("a"), []Key{key}))
	w.noLeases(w.own)
	w.remembersNothing(m)
}

func TestAMissingOwnNamespaceIsAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process(func(o *Options) { o.Namespace = w.later() })
	_, err := m.Acquire(t.Context(), holder("a"), []Key{clusterRole("reader")})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = m.Acquire(t.Context(), holder("a"), []Key{deployment(w.later()+"-too", "web")})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	w.remembersNothing(m)
}
