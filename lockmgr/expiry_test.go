package lockmgr

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func withHolder(identity string, seconds *int32) coordinationv1.LeaseSpec {
	spec := coordinationv1.LeaseSpec{LeaseDurationSeconds: seconds}
	if identity != "" {
		spec.HolderIdentity = ptr.To(identity)
	}
	return spec
}

func TestExpiryIsJudgedByOurClockWhateverTimeTheRecordStates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	for name, renewed := range map[string]*metav1.MicroTime{
		"far-past":   {Time: time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)},
		"far-future": {Time: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)},
		"unknown":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			key := w.key(name)
			spec := withHolder("other", ptr.To[int32](10))
			spec.RenewTime, spec.AcquireTime = renewed, renewed
			spec.LeaseTransitions = ptr.To[int32](6)
			w.write(w.home(key), spec)

			require.Equal(t, 10*time.Second, w.refused(m, holder("a"), key).Until, "we see it for the first time")
			w.step(10*time.Second - time.Millisecond)
			require.Equal(t, time.Millisecond, w.refused(m, holder("a"), key).Until)
			w.step(time.Millisecond)
			w.acquire(m, holder("a"), key)

			lease := w.lease(w.home(key))
			require.Equal(t, "a", holderOf(lease))
			require.EqualValues(t, 7, *lease.Spec.LeaseTransitions)
			require.True(t, lease.Spec.AcquireTime.Equal(&metav1.MicroTime{Time: w.clock.Now()}))
			require.EqualValues(t, 30, *lease.Spec.LeaseDurationSeconds)
		})
	}
}

func TestAnyChangeOfTheRecordRestartsTheCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	key := w.key("web")
	other, _ := w.process()
	locks := w.acquire(other, holder("other"), key)
	w.refused(m, holder("a"), key)
	w.step(ttl - time.Second)
	require.NoError(t, other.Keep(t.Context(), holder("other"), locks))
	require.Equal(t, ttl, w.refused(m, holder("a"), key).Until)
	w.step(ttl - time.Second)
	w.touch(w.home(key))
	require.Equal(t, ttl, w.refused(m, holder("a"), key).Until)
	w.step(ttl - time.Second)
	w.remove(w.home(key))
	w.write(w.home(key), withHolder("other", ptr.To[int32](30)))
	require.Equal(t, ttl, w.refused(m, holder("a"), key).Until)
}

func TestTheCountBeginsWhenTheProcessFirstSawTheRecordNotWhenTheHolderDid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	key := w.key("web")
	w.write(w.home(key), withHolder("other", ptr.To[int32](10)))
	w.refused(m, holder("a"), key)
	w.step(9 * time.Second)
	require.Equal(t, time.Second, w.refused(m, holder("b"), key).Until)
	w.step(time.Second)
	w.acquire(m, holder("b"), key)
}

func TestANewProcessWaitsForTheWholeDuration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.key("web")
	w.write(w.home(key), withHolder("other", ptr.To[int32](10)))
	first, _ := w.process()
	w.refused(first, holder("a"), key)
	w.step(time.Hour)
	second, _ := w.process()
	require.Equal(t, 10*time.Second, w.refused(second, holder("a"), key).Until)
}

func TestATakeoverCopesWithWhateverALeaseLacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := holder("a")
	h.Labels = map[string]string{"janus.io/transaction": "t"}
	for name, c := range map[string]struct {
		spec coordinationv1.LeaseSpec
		wait time.Duration
	}{
		"nothing-at-all":   {coordinationv1.LeaseSpec{}, 0},
		"an-empty-holder":  {coordinationv1.LeaseSpec{HolderIdentity: ptr.To("")}, 0},
		"no-holder":        {withHolder("", ptr.To[int32](3600)), 0},
		"only-a-holder":    {withHolder("other", nil), ttl},
		"most-transitions": {coordinationv1.LeaseSpec{LeaseTransitions: ptr.To[int32](math.MaxInt32)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			m, _ := w.process()
			key := w.key(name)
			before := w.write(w.home(key), c.spec)
			if c.wait > 0 {
				require.Equal(t, c.wait, w.refused(m, h, key).Until, "as long as one of ours")
				w.step(c.wait)
			}
			w.acquire(m, h, key)
			after := w.lease(w.home(key))
			require.Equal(t, before.UID, after.UID, "taken over in place")
			require.Equal(t, h.Labels, after.Labels)
			require.Positive(t, *after.Spec.LeaseTransitions)
		})
	}
}

func TestATakeoverLeavesNothingOfThePredecessor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	key := w.key("web")
	old := holder("old")
	old.Labels = map[string]string{"janus.io/transaction": "old", "extra": "label"}
	old.Annotations = map[string]string{"extra": "annotation"}
	old.Owner = w.owner("old")
	old.OwnerNamespace = w.namespace
	w.acquire(m, old, key)
	w.refused(m, holder("new"), key)
	w.step(ttl)
	w.acquire(m, holder("new"), key)
	lease := w.lease(w.home(key))
	require.Empty(t, lease.Labels)
	require.Empty(t, lease.Annotations)
	require.Empty(t, lease.OwnerReferences, "the predecessor's end would delete our lock")
}

func TestALeaseThatIsBeingDeletedIsHeldUntilItIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	for name, c := range map[string]struct {
		holder string
		until  time.Duration
	}{
		"of-another": {"other", 10 * time.Second},
		"free":       {"", 10 * time.Second},
		"our-own":    {"a", 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			key := w.key(name)
			w.write(w.home(key), withHolder(c.holder, ptr.To[int32](10)))
			w.change(w.home(key), func(l *coordinationv1.Lease) { l.Finalizers = []string{"example.com/stay"} })
			w.remove(w.home(key))
			held := w.refused(m, holder("a"), key)
			require.Equal(t, c.holder, held.Holder)
			require.Equal(t, c.until, held.Until)
			w.step(time.Hour)
			require.Equal(t, time.Second, w.refused(m, holder("a"), key).Until, "when to look again")
			require.NoError(t, m.Release(t.Context(), holder("a"), []Key{key}), "its deletion is under way")
			w.change(w.home(key), func(l *coordinationv1.Lease) { l.Finalizers = nil })
			w.acquire(m, holder("a"), key)
		})
	}
}
