package lockmgr

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

func TestWhoHoldsALockIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	other, tap := w.process()
	key, absent := w.key("web"), deployment(w.namespace+"-later", "web")
	holds := func(key Key) string {
		who, err := other.HoldersOf(t.Context(), key)
		require.NoError(t, err)
		return strings.Join(who, ", ")
	}
	require.Empty(t, holds(key))
	require.Empty(t, holds(absent))

	w.acquire(m, holder("a"), key, absent, clusterRole("reader"))
	tap.counted()
	require.Equal(t, "a", holds(key))
	require.Equal(t, map[string]int{"GET": 1}, tap.counted())
	require.Equal(t, "a", holds(absent), "by a stand-in")
	require.Equal(t, "a", holds(clusterRole("reader")))
	w.acquire(m, holder("b"), shared(w.key("read")))
	w.acquire(m, holder("c"), shared(w.key("read")))
	require.Equal(t, "b, c", holds(w.key("read")))

	w.step(10 * ttl)
	require.Equal(t, "a", holds(key), "what it was about to do may be half done")
	w.change(w.home(key), func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("") })
	require.Empty(t, holds(key), "of a Lease that nobody holds")
	w.remembersNothing(other)

	tap.on(rule{method: "GET", lose: true})
	_, err := other.HoldersOf(t.Context(), key)
	require.ErrorIs(t, err, errLost, "who does not know does not say nobody")
}
