package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
)

// Before-images that the status does not name are not looked for only where there can be none: where
// this process has run the Transaction from the beginning, and saved them once. Where a request of
// another may have been under way, the last look, which comes later, does not believe one answer.
func TestStraysAreLookedForWhereTheyMayBe(t *testing.T) {
	for title, tt := range map[string]struct {
		disturb func(w *world)
		want    Search
	}{
		"nothing happens": {func(*world) {}, SearchNot},
		"a change is refused, and what was made is rolled back": {func(w *world) { w.refuse["do b"] = errRefused }, SearchNot},
		"the server is busy when they are saved": {func(w *world) {
			w.replies["save"] = []reply{{err: errBusy}}
		}, SearchOnce},
		"the answer is lost when they are saved": {func(w *world) {
			w.replies["save"] = []reply{{err: errLost}}
		}, SearchTwice},
		"they are saved twice, because another client has written the Transaction": {func(w *world) {
			w.after["save"] = func() { delete(w.after, "save"); w.overtake() }
		}, SearchTwice},
		"the process ends when they are saved": {func(w *world) {
			w.nth = func(_ int, who string) reply { return reply{crash: who == "save"} }
			w.after["-- the process ends"] = func() { w.nth = nil }
		}, SearchTwice},
		"the process ends when a change is made": {func(w *world) {
			w.nth = func(_ int, who string) reply { return reply{crash: who == "do a"} }
			w.after["-- the process ends"] = func() { w.nth = nil }
		}, SearchTwice},
		"a lock is waited for": {func(w *world) {
			w.locks["b"] = "another Transaction"
			w.after["-- looks again in 1s"] = func() { delete(w.locks, "b") }
		}, SearchOnce},
		"the process ends while another plan stands than the one for which they were saved": {standing(func(w *world) {
			w.after["-- someone approves"] = func() {
				w.targets["b"] = "theirs"
				w.after["-- someone approves"] = w.restart
			}
		}), SearchTwice},
		"the process ends before another plan is made": {standing(func(w *world) {
			w.after["-- someone approves"] = func() {
				w.targets["b"] = "theirs"
				w.nth = func(_ int, who string) reply { return reply{crash: who == "validate"} }
				w.after["-- the process ends"] = func() { w.nth = nil }
			}
		}), SearchTwice},
		"another client has written the Transaction while changes are made": {func(w *world) {
			w.after["do a"] = w.overtake
		}, SearchTwice},
	} {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t, "a", "b")
			tt.disturb(w)
			w.run()
			require.Contains(t, []api.Phase{api.PhaseCommitted, api.PhaseRolledBack}, phaseOf(w), w.transcript())
			require.NotEmpty(t, w.searched, w.transcript())
			if tt.want == SearchNot {
				assert.Equal(t, []Search{SearchNot}, w.searched, w.transcript())
				return
			}
			assert.NotContains(t, w.searched, SearchNot, w.transcript())
			assert.Equal(t, tt.want, w.searched[len(w.searched)-1], "the last time nobody looks again")
		})
	}
}
