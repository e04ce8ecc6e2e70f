package lockmgr

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"janus.io/janus/internal/sharedlease"
)

// labelled is a holder whose Leases have labels.
func labelled(identity string) Holder {
	h := holder(identity)
	h.Labels = map[string]string{"managed-by": "us", "of": identity}
	h.SharedLabels = map[string]string{"managed-by": "us", "of": ""}
	return h
}

// unlabel takes all labels off a Lease.
func (w *world) unlabel(place types.NamespacedName) {
	w.t.Helper()
	w.change(place, func(lease *coordinationv1.Lease) { lease.Labels = nil })
}

// hasLabels wants a Lease to have these labels, among others.
func (w *world) hasLabels(place types.NamespacedName, labels map[string]string) {
	w.t.Helper()
	require.Subset(w.t, w.lease(place).Labels, labels)
}

func TestALeaseThatNamesAHolderAndLacksItsLabelsIsAnothers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, labels := range map[string]map[string]string{
		"no-label": nil, "one-of-two": {"managed-by": "us"}, "another-value": {"managed-by": "us", "of": "b"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			key := w.key(name)
			w.write(w.home(key), withHolder("a", ptr.To[int32](10)))
			w.change(w.home(key), func(lease *coordinationv1.Lease) { lease.Labels = labels })
			m, tap := w.process()
			asked := labelled("a")
			asked.Ended = func(context.Context, *coordinationv1.Lease) bool { return true }
			held := w.refused(m, asked, key)
			require.Equal(t, HeldError{Key: key, Lease: w.home(key).String(), Holder: "a", Forged: true, Lasts: 10 * time.Second, Until: 10 * time.Second}, held)
			require.ErrorContains(t, &held, `another client has written holder "a" into Lease `+w.home(key).String())
			require.NotContains(t, tap.counted(), "PUT", "it is left as it is")

			// It is in the way for as long as it says, and no longer.
			w.step(10*time.Second - time.Millisecond)
			w.refused(m, labelled("a"), key)
			w.step(time.Millisecond)
			w.acquire(m, labelled("a"), key)
			w.hasLabels(w.home(key), labelled("a").Labels)
			require.EqualValues(t, 1, *w.lease(w.home(key)).Spec.LeaseTransitions)
		})
	}
}

func TestALeaseThatAnotherHasMadeInOurNameRightBeforeUsIsNotTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.key("web")
	m, tap := w.process()
	tap.on(rule{method: "POST", before: func() { w.write(w.home(key), withHolder("a", ptr.To[int32](30))) }})
	require.True(t, w.refused(m, labelled("a"), key).Forged)
	w.remove(w.home(key))
	w.acquire(m, labelled("a"), key)
	w.hasLabels(w.home(key), labelled("a").Labels)
}

func TestLabelsThatWereTakenOffOurLeaseArePutOnAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, tap := w.process()
	key := w.key("web")
	absent := deployment("absent-"+w.namespace, "web")
	locks := w.acquire(m, labelled("a"), key, absent)
	before := map[types.NamespacedName]map[string]string{}
	for _, lock := range locks {
		before[lock.place()] = maps.Clone(w.lease(lock.place()).Labels)
		w.unlabel(lock.place())
	}
	w.step(ttl / 3)
	tap.on(rule{method: "PUT", path: w.own, skip: 1, lose: true}) // The first one is refused as outdated.
	require.ErrorIs(t, m.Keep(t.Context(), labelled("a"), locks), errLost)
	require.NoError(t, m.Keep(t.Context(), labelled("a"), locks))
	for place, labels := range before {
		require.Equal(t, labels, w.lease(place).Labels)
	}

	// Acquire does the same as Keep.
	w.unlabel(locks[1].place())
	w.step(ttl / 3)
	w.acquire(m, labelled("a"), key, absent)
	w.hasLabels(locks[1].place(), before[locks[1].place()])
	require.NoError(t, m.Release(t.Context(), labelled("a"), []Key{key, absent}))
	w.noLeases(w.namespace)
	w.noLeases(w.own)
}

func TestAProcessThatFindsItsLeaseWithoutLabelsHasLostIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _ := w.process()
	key := w.key("web")
	locks := w.acquire(first, labelled("a"), key)
	w.unlabel(w.home(key))

	second, _ := w.process()
	lost := w.lost(second.Keep(t.Context(), labelled("a"), locks))
	require.Equal(t, LostError{Lock: locks[0], Holder: "a", Forged: true}, lost)
	require.ErrorContains(t, &lost, `another client has written holder "a"`)
	require.True(t, w.refused(second, labelled("a"), key).Forged)

	// Nothing that names the holder stays when it ends.
	require.NoError(t, second.Release(t.Context(), labelled("a"), []Key{key}))
	w.noLease(w.home(key))
	w.remembersNothing(second)
}

func TestAReleaseDeletesALeaseThatHasLostItsLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	key := w.key("web")
	w.acquire(m, labelled("a"), key)
	w.unlabel(w.home(key))
	require.NoError(t, m.Release(t.Context(), labelled("a"), []Key{key}))
	w.noLease(w.home(key))
}

func TestAForgedStandInIsAnothers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.key("web")
	w.write(w.away(key), withHolder("a", ptr.To[int32](10)))
	w.change(w.away(key), func(lease *coordinationv1.Lease) {
		lease.Labels = map[string]string{LabelStandsInFor: standInLabel(w.namespace)}
	})
	m, _ := w.process()
	held := w.refused(m, labelled("a"), key)
	require.True(t, held.Forged)
	require.Equal(t, w.away(key).String(), held.Lease)
	w.noLease(w.home(key))
	w.step(10 * time.Second)
	w.acquire(m, labelled("a"), key)
	w.noLease(w.away(key))
}

func TestASharedLeaseWithoutLabelsIsNotJoined(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.key("web")
	real, _ := w.process()
	locks := w.acquire(real, labelled("a"), shared(key))
	w.acquire(real, labelled("b"), shared(key))
	w.unlabel(w.home(key))

	m, tap := w.process()
	held := w.refused(m, labelled("c"), shared(key))
	require.False(t, held.Shared)
	waits := labelled("d")
	waits.Waits = true
	w.refused(m, waits, key)
	require.True(t, w.refused(m, labelled("b"), shared(key)).Forged)
	require.NotContains(t, tap.counted(), "PUT", "nobody enters it")

	// A process that has made it puts the labels on again.
	w.step(ttl / 3)
	require.NoError(t, real.Keep(t.Context(), labelled("a"), locks))
	w.hasLabels(w.home(key), labelled("a").SharedLabels)
	w.acquire(m, labelled("c"), shared(key))
	w.sharedBy(locks[0], "", "a", "b", "c")

	// One that nobody renews is over when its time is.
	w.unlabel(w.home(key))
	w.refused(m, labelled("d"), key)
	w.step(ttl)
	w.acquire(m, labelled("d"), key)
	w.heldBy(w.home(key), "d")
	require.NotEqual(t, sharedlease.Holder, holderOf(w.lease(w.home(key))))
}
