package lockmgr

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestKeepCostsNothingForFreshLocksAndOneUpdateEachForOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	locks := w.acquire(m, holder("a"), w.keys(10)...)
	tap.counted()
	require.NoError(t, m.Keep(t.Context(), holder("a"), locks))
	w.step(ttl/3 - time.Millisecond)
	require.NoError(t, m.Keep(t.Context(), holder("a"), locks))
	require.Empty(t, tap.counted())

	w.step(time.Millisecond)
	require.NoError(t, m.Keep(t.Context(), holder("a"), locks))
	require.Equal(t, map[string]int{"PUT": 10}, tap.counted())
	require.True(t, w.lease(locks[9].place()).Spec.RenewTime.Equal(&metav1.MicroTime{Time: w.clock.Now()}))
	require.NoError(t, m.Keep(t.Context(), holder("a"), locks))
	require.Empty(t, tap.counted(), "fresh again")
}

func TestTimeCountsFromBeforeTheRequestWasSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	tap.on(rule{method: "POST", before: func() { w.step(ttl / 3) }})
	locks := w.acquire(m, holder("a"), w.key("web"))
	tap.counted()
	require.NoError(t, m.Keep(t.Context(), holder("a"), locks))
	require.Equal(t, map[string]int{"PUT": 1}, tap.counted(), "the answer took a third of the time")
}

func TestAClockThatWentBackProvesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	locks := w.acquire(m, holder("a"), w.key("web"))
	tap.counted()
	w.step(-time.Hour)
	require.NoError(t, m.Keep(t.Context(), holder("a"), locks))
	require.Equal(t, map[string]int{"PUT": 1}, tap.counted())
}

func TestAfterARestartKeepLooksAndRenews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _ := w.process()
	locks := w.acquire(first, holder("a"), w.keys(3)...)
	w.step(time.Hour)
	second, tap := w.process()
	require.NoError(t, second.Keep(t.Context(), holder("a"), locks), "expired, but taken by nobody")
	require.Equal(t, map[string]int{"GET": 3, "PUT": 3}, tap.counted())
	require.NoError(t, second.Keep(t.Context(), holder("a"), locks))
	require.Empty(t, tap.counted())
}

func TestKeepTakesAgainWhatIsGoneOrEmptied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, restart := range map[string]bool{"with-memory": false, "after-a-restart": true} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			m, _ := w.process()
			gone, emptied := w.key("gone-"+name), w.key("emptied-"+name)
			locks := w.acquire(m, holder("a"), gone, emptied)
			w.remove(w.home(gone))
			w.change(w.home(emptied), func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil })
			if restart {
				m, _ = w.process()
			}
			w.step(ttl)
			require.NoError(t, m.Keep(t.Context(), holder("a"), locks))
			w.heldBy(w.home(gone), "a")
			w.heldBy(w.home(emptied), "a")
		})
	}
}

func TestKeepSaysTheFirstLockThatIsLostAndRenewsTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range map[string]struct{ restart, recreated bool }{
		"taken-over": {}, "taken-over-and-restarted": {restart: true},
		"created-anew": {recreated: true}, "created-anew-and-restarted": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			m, _ := w.process()
			other, _ := w.process()
			keys := []Key{w.key(name + "-1"), w.key(name + "-2"), w.key(name + "-3"), w.key(name + "-4")}
			locks := w.acquire(m, holder("a"), keys...)
			for _, key := range keys[1:3] {
				if c.recreated {
					w.remove(w.home(key))
				} else {
					w.refused(other, holder("b"), key)
				}
			}
			w.step(ttl)
			w.acquire(other, holder("b"), keys[1:3]...)
			if c.restart {
				m, _ = w.process()
			}
			lost := w.lost(m.Keep(t.Context(), holder("a"), []Lock{locks[3], locks[2], locks[1], locks[0]}))
			require.Equal(t, locks[1], lost.Lock)
			require.Equal(t, "b", lost.Holder)
			require.True(t, w.lease(locks[3].place()).Spec.RenewTime.Equal(&metav1.MicroTime{Time: w.clock.Now()}))
			w.heldBy(w.home(keys[2]), "b")
			w.step(time.Hour)
			w.lost(m.Keep(t.Context(), holder("a"), locks[:2]))
			w.heldBy(w.home(keys[1]), "b")
		})
	}
}

func TestKeepFindsALeaseTakenAgainByAnotherOnlyNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	other, _ := w.process()
	locks := w.acquire(m, holder("a"), w.key("web"))
	w.remove(locks[0].place())
	w.step(ttl)
	tap.on(rule{method: "POST", before: func() { w.acquire(other, holder("b"), w.key("web")) }})
	require.Equal(t, "b", w.lost(m.Keep(t.Context(), holder("a"), locks)).Holder)
}

func TestKeepSurvivesWritesOfOthersToItsLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	locks := w.acquire(m, holder("a"), w.key("web"))
	w.touch(locks[0].place())
	w.step(ttl)
	tap.counted()
	require.NoError(t, m.Keep(t.Context(), holder("a"), locks))
	require.Equal(t, map[string]int{"PUT": 2, "GET": 1}, tap.counted())
	require.Contains(t, w.lease(locks[0].place()).Annotations, "touched", "it is not our field")

	w.step(ttl)
	tap.on(rule{method: "PUT", before: func() { w.touch(locks[0].place()) }, again: true})
	err := m.Keep(t.Context(), holder("a"), locks)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, locks[0].String())
}

func TestALostAnswerToARenewalIsResolvedByTheNextKeep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	locks := w.acquire(m, holder("a"), w.key("web"))
	w.step(ttl / 2)
	tap.on(rule{method: "PUT", lose: true})
	require.ErrorIs(t, m.Keep(t.Context(), holder("a"), locks), errLost)
	tap.counted()
	w.step(time.Second)
	require.NoError(t, m.Keep(t.Context(), holder("a"), locks))
	require.Equal(t, map[string]int{"PUT": 2, "GET": 1}, tap.counted())
}

func TestALockTakenAgainWithALostAnswerToTheListIsSettledByTheNextKeep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	locks := w.acquire(m, holder("a"), w.key("web"))
	w.remove(locks[0].place())
	w.step(ttl)
	tap.on(rule{method: "LIST", lose: true})
	require.ErrorIs(t, m.Keep(t.Context(), holder("a"), locks), errLost)
	tap.counted()
	require.NoError(t, m.Keep(t.Context(), holder("a"), locks))
	require.Equal(t, map[string]int{"LIST": 1}, tap.counted())
}
