package lockmgr

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
)

// aRealClock gives a process the clock of the machine, which never shows the same time twice.
func aRealClock(o *Options) { o.Clock = clock.RealClock{} }

// As many locks as a Transaction can have in one namespace fit into a table, and are renewed there.
func TestATableHasRoomForALargeTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables = true
	m, _ := w.process(aRealClock)
	h := holder("large")
	h.TTL = 3 * time.Second
	locks, err := m.Acquire(t.Context(), h, w.keys(1000))
	require.NoError(t, err)
	require.Len(t, locks, 1000)
	for range 3 {
		<-time.After(h.TTL / 3)
		require.NoError(t, m.Keep(t.Context(), h, locks))
	}
	require.NoError(t, m.Release(t.Context(), h, w.keys(1000)))
	w.noLeases(w.namespace)
}

// Locks that were taken one after the other are renewed in one request from the first renewal on, and say
// one time.
func TestLocksInATableAreRenewedTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tables = true
	m, tap := w.process()
	h := holder("a")
	keys := w.keys(6)
	var locks []Lock
	for i := range keys {
		got, err := m.Acquire(t.Context(), h, keys[i:i+1])
		require.NoError(t, err)
		locks = append(locks, got...)
		w.step(ttl / 40)
	}
	w.step(ttl / 5) // A third of the time of the first is over, and of no other.
	for range 3 {
		tap.counted()
		require.NoError(t, m.Keep(t.Context(), h, locks))
		require.Equal(t, map[string]int{http.MethodPut: 1}, tap.counted())
		said := map[string]bool{}
		for _, key := range keys {
			said[w.lease(w.home(key)).Spec.RenewTime.String()] = true
		}
		require.Len(t, said, 1)
		w.step(ttl / 3)
	}
}
