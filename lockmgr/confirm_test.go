package lockmgr

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"
)

var errUnwanted = errors.New("it is wanted no more")

// Who asks for the lock may have hung since it decided to, and the lock is wanted no
// more: nobody would release it.
func TestNoLeaseIsMadeThatIsNotWantedAnyMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, _ := w.process()
	h, key := holder("a"), w.key("web")
	wanted := true
	h.Confirm = func(context.Context, bool) error {
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

// Who has hung finds a Lease of its own holder that another process has made since. It is
// not to take that for its own, and give it back because it does not get another lock.
func TestNoLeaseIsTakenOverThatAnotherProcessHasMadeSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	late, _ := w.process()
	other, _ := w.process()
	keys := w.keys(2)
	w.write(w.home(keys[0]), withHolder("somebody", ptr.To[int32](10)))
	w.acquire(other, holder("a"), keys[1])
	before := w.lease(w.home(keys[1]))
	w.step(time.Millisecond)

	h := holder("a")
	h.Confirm = func(_ context.Context, found bool) error {
		if found {
			return errUnwanted
		}
		return nil
	}
	_, err := late.Acquire(t.Context(), h, keys)
	require.Error(t, err)
	require.Equal(t, before.ResourceVersion, w.lease(w.home(keys[1])).ResourceVersion)
}

// Who has hung while it let go of a Transaction finds a Lease that another process has
// taken for it since, to go on with it.
func TestNoLeaseIsReleasedThatAnotherProcessHasTakenSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	late, _ := w.process()
	other, _ := w.process()
	key := w.key("web")
	w.acquire(other, holder("a"), key)

	h := holder("a")
	overtaken := true
	h.Confirm = func(_ context.Context, found bool) error {
		if found && overtaken {
			return errUnwanted
		}
		return nil
	}
	require.ErrorIs(t, late.Release(t.Context(), h, []Key{key}), errUnwanted)
	w.heldBy(w.home(key), "a")
	overtaken = false
	require.NoError(t, late.Release(t.Context(), h, []Key{key}))
	w.noLease(w.home(key))
}
