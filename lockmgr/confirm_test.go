package lockmgr

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

var errUnwanted = errors.New("it is wanted no more")

// Who asks for the lock may have hung since it decided to, and the lock is wanted no
// more: nobody would release it.
func TestNoLeaseIsMadeThatIsNotWantedAnyMore(t *testing.T) {
	w := newWorld(t)
	m, _ := w.process()
	h, key := holder("a"), w.key("web")
	wanted := true
	h.Confirm = func(context.Context) error {
		if !wanted {
			return errUnwanted
		}
		return nil
	}
	locks := w.acquire(m, h, key)

	// Another process of the same holder has released it.
	w.remove(w.home(key))
	wanted = false
	w.step(ttl)
	require.ErrorIs(t, m.Keep(t.Context(), h, locks), errUnwanted)
	w.noLease(w.home(key))
	_, err := m.Acquire(t.Context(), h, []Key{key})
	require.ErrorIs(t, err, errUnwanted)
	w.noLease(w.home(key))

	wanted = true
	w.acquire(m, h, key)
	w.heldBy(w.home(key), "a")
}
