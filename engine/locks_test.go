package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// A step that has not kept the locks cannot be written but by mistake; then it sends nothing.
func TestNothingIsSentWithoutTheLocks(t *testing.T) {
	w := newWorld(t, "a")
	w.stored.Status.Items = []api.Item{{Name: "a", Target: w.stored.Spec.Changes[0].Target, State: api.ItemCommitting}}
	s, other := w.engine.saga(w.stored), w.engine.saga(w.stored)
	for _, l := range []locked{{}, {by: other}} {
		_, err := s.intent(l, 0, api.ItemCommitting)
		require.ErrorIs(t, err, errNotLocked)
		_, err = s.saveImages(t.Context(), l, []int{0})
		require.ErrorIs(t, err, errNotLocked)
		require.ErrorIs(t, committing{s}.send(t.Context(), l, 0), errNotLocked)
	}
	assert.Empty(t, w.lines)

	kept, err := s.keepLocks(t.Context())
	require.NoError(t, err)
	_, err = s.intent(kept, 0, api.ItemCommitting)
	require.NoError(t, err)
}

// A lock that has passed to another holder stops a change and no compensation.
func TestACompensationIsMadeWithoutALockThatIsLost(t *testing.T) {
	w := newWorld(t, "a")
	w.stored.Status.Items = []api.Item{{Name: "a", Target: w.stored.Spec.Changes[0].Target, State: api.ItemRollingBack}}
	w.locks["a"] = "them"
	s := w.engine.saga(w.stored)
	_, err := s.keepLocks(t.Context())
	require.True(t, plan.Definite(err), err)
	l, err := s.keepLocksIfPossible(t.Context())
	require.NoError(t, err)
	_, err = s.intent(l, 0, api.ItemRollingBack)
	require.NoError(t, err)

	w.replies["keep the locks"] = []reply{{err: errBusy}}
	_, err = s.keepLocksIfPossible(t.Context())
	require.ErrorIs(t, err, errBusy, "it is kept later")
}
