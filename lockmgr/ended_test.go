package lockmgr

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// knowing is the holder a, who knows which others have ended.
func knowing(ended ...string) Holder {
	h := holder("a")
	h.Ended = func(_ context.Context, lease *coordinationv1.Lease) bool {
		for _, other := range ended {
			if holderOf(lease) == other {
				return true
			}
		}
		return false
	}
	return h
}

func TestALockWhoseHolderHasEndedIsTakenOverAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	left, _ := w.process()
	key, away := w.key("web"), deployment(w.later(), "web")
	w.acquire(left, holder("old"), key, away)
	uid := w.lease(w.home(key)).UID
	m, _ := w.process()

	require.Equal(t, ttl, w.refused(m, knowing("another"), key).Until)
	w.acquire(m, knowing("old"), key, away)

	lease := w.lease(w.home(key))
	require.Equal(t, uid, lease.UID, "it is taken over in place")
	require.EqualValues(t, 1, *lease.Spec.LeaseTransitions)
	w.heldBy(w.away(away), "a")
	require.NoError(t, m.Release(t.Context(), holder("a"), []Key{key, away}))
	w.remembersNothing(m)
}

func TestAStandInWhoseHolderHasEndedIsDeletedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	left, _ := w.process()
	key := deployment(w.later(), "web")
	w.acquire(left, holder("old"), key)
	w.createNamespace(w.later())
	m, _ := w.process()

	require.Equal(t, w.home(key), w.acquire(m, knowing("old"), key)[0].place())

	w.noLease(w.away(key))
}

// A holder that had ended takes its work up again while it is asked about. It renews its Lease
// before it relies on it, and that keeps the other out.
func TestAHolderThatComesBackWhileItIsAskedAboutKeepsItsLock(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]bool{"at-home": false, "as-a-stand-in": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			owner, _ := w.process()
			key := w.key("web")
			if away {
				key = deployment(w.later(), "web")
			}
			locks := w.acquire(owner, holder("old"), key)
			if away {
				w.createNamespace(w.later())
			}
			w.step(ttl - time.Second)
			h, asked := holder("a"), 0
			h.Ended = func(ctx context.Context, _ *coordinationv1.Lease) bool {
				if asked++; asked > 1 {
					return false // It has taken its work up.
				}
				require.NoError(t, owner.Keep(ctx, holder("old"), locks))
				return true
			}
			m, _ := w.process()

			require.Equal(t, "old", w.refused(m, h, key).Holder)

			w.heldBy(locks[0].place(), "old")
			require.NoError(t, owner.Keep(t.Context(), holder("old"), locks))
		})
	}
}

// It comes back later, and finds that the lock is another's.
func TestAHolderThatComesBackAfterItsLockWasTakenHasLostIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.key("web")
	first, _ := w.process()
	locks := w.acquire(first, holder("old"), key)
	m, _ := w.process()
	w.acquire(m, knowing("old"), key)

	first.Distrust("old")
	require.Equal(t, "a", w.lost(first.Keep(t.Context(), holder("old"), locks)).Holder)
	restarted, _ := w.process()
	require.Equal(t, "a", w.lost(restarted.Keep(t.Context(), holder("old"), locks)).Holder)
	require.NoError(t, restarted.Release(t.Context(), holder("old"), []Key{key}))
	w.heldBy(w.home(key), "a")
}

// What is asked costs a request. A lock that is free, ours or over needs none.
func TestNobodyIsAskedAboutALockThatCanBeHadAnyway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h, asked := holder("a"), 0
	h.Ended = func(context.Context, *coordinationv1.Lease) bool { asked++; return false }
	m, _ := w.process()
	w.acquire(m, h, w.key("free"))
	restarted, _ := w.process()
	w.acquire(restarted, h, w.key("free"))
	other, _ := w.process()
	w.acquire(other, holder("old"), w.key("over"))
	w.refused(m, h, w.key("over"))
	require.Equal(t, 1, asked)
	w.step(ttl)
	w.acquire(m, h, w.key("over"))
	require.Equal(t, 1, asked)
}
