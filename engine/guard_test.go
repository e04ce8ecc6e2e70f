package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// guard makes an item of a world a guard.
func (w *world) guard(name string) {
	c := &w.stored.Spec.Changes[slices.IndexFunc(w.stored.Spec.Changes, func(c api.Change) bool { return c.Name == name })]
	c.Type, c.Guard, c.ReadyWhen = api.Await, true, &api.ReadyWhen{Expression: "object != null"}
}

// breaks has the guard g not hold any more once a line was written.
func (w *world) breaks(after string) {
	w.after[after] = func() { w.unready["g"] = Readiness{Message: "ConfigMap shop/g: object != null is false"} }
}

// replaces has the object of a guard be another one once a line was written.
func (w *world) replaces(name, after string) {
	w.after[after] = func() { w.unready[name] = Readiness{Ready: true, UID: "another"} }
}

var guards = []scenario{
	{"a guard holds from the first change to the commit", []string{"g", "a", "b"}, func(w *world) { w.guard("g") }, api.PhaseCommitted},
	{"a guard does not hold before the first change", []string{"g", "a", "b"}, func(w *world) {
		w.guard("g")
		w.breaks("look at g: ready=true")
	}, api.PhaseRolledBack},
	{"a guard does not hold before the commit", []string{"g", "a", "b"}, func(w *world) {
		w.guard("g")
		w.breaks("do b")
	}, api.PhaseRolledBack},
	{"a guard is another object before the commit", []string{"g", "a", "b"}, func(w *world) {
		w.guard("g")
		w.replaces("g", "do b")
	}, api.PhaseRolledBack},
	{"a guard comes after a change", []string{"a", "g", "b"}, func(w *world) { w.guard("g") }, api.PhaseCommitted},
	{"two guards are judged again before the first change", []string{"g", "h", "a"}, func(w *world) {
		w.guard("g")
		w.guard("h")
		w.unready["h"] = Readiness{Message: "ConfigMap shop/h: not yet"}
		w.after["-- looks again in 1s"] = func() { delete(w.unready, "h") }
	}, api.PhaseCommitted},
	{"a guard cannot be judged for a while", []string{"g", "a"}, func(w *world) {
		w.guard("g")
		w.after["do a"] = func() { w.replies["look at g"] = []reply{{err: errLost}, {err: errBusy}} }
	}, api.PhaseCommitted},
	{"a guard cannot be judged before the commit until the time is over", []string{"g", "a"}, func(w *world) {
		w.guard("g")
		w.stored.Spec.Timeout = ptr.To(api.Duration("5s"))
		w.after["do a"] = func() { w.refuse["look at g"] = errLost }
	}, api.PhaseRolledBack},
	{"the lock of a guard is lost", []string{"g", "a"}, func(w *world) {
		w.guard("g")
		w.after["do a"] = func() { w.locks["g"] = "another Transaction" }
	}, api.PhaseRolledBack},
	{"what has only a guard commits", []string{"g"}, func(w *world) { w.guard("g") }, api.PhaseCommitted},
}

// Whatever a process does not live to do, a Transaction whose guard does not hold makes no first
// change and does not commit.
func TestACrashWhileGuardsAreJudgedChangesNothingAboutTheEnd(t *testing.T) {
	for _, s := range guards {
		t.Run(s.name, func(t *testing.T) {
			for n := 1; ; n++ {
				w := newWorld(t, s.items...)
				s.set(w)
				w.nth = func(call int, _ string) reply { return reply{crash: call == n} }
				w.run()
				require.NoError(t, checkOrder(w.lines), w.transcript())
				if s.ends == api.PhaseCommitted {
					require.Equal(t, s.ends, phaseOf(w), w.transcript())
				} else {
					require.Contains(t, []api.Phase{s.ends, api.PhaseCommitted}, phaseOf(w), w.transcript())
				}
				guarded(t, w)
				oracle(t, w)
				if w.calls < n {
					return
				}
			}
		})
	}
}

// guarded reports a change or a hand-over that comes after a look at a guard which did not find
// it as it was.
func guarded(t *testing.T, w *world) {
	t.Helper()
	broken := false
	for _, line := range w.lines {
		switch {
		case strings.HasPrefix(line, "look at g: "):
			broken = strings.Contains(line, "ready=false")
		case broken && (strings.HasPrefix(line, "do ") || strings.HasPrefix(line, "hand over")):
			t.Errorf("%q although the guard was found not to hold:\n%s", line, w.transcript())
		}
	}
}

func TestWhatIsSaidOfAGuardThatDoesNotHold(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(w *world)
		says string
	}{
		"before the first change": {func(w *world) { w.breaks("look at g: ready=true") }, "the guard held, and does not right before the first change: ConfigMap shop/g: object != null is false"},
		"before the commit":       {func(w *world) { w.breaks("do a") }, "the guard held, and does not right before the commit: ConfigMap shop/g: object != null is false"},
		"another object": {
			func(w *world) { w.replaces("g", "do a") },
			"the guard held, and does not right before the commit: ConfigMap shop/g is not the object that it was when it was found ready: it was absent, and is uid another",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "g", "a")
			w.guard("g")
			c.set(w)
			w.run()
			require.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
			item := w.stored.Status.Items[0]
			assert.Equal(t, errclass.GuardBroken, item.Reason)
			assert.Equal(t, c.says, item.Message)
			require.Len(t, item.Results, 1)
			assert.False(t, item.Results[0].Holds)
			assert.Nil(t, w.stored.Status.GuardTime)
		})
	}
}

// Once it is on record that the guards hold, the end goes its way: fields are handed over then,
// which nothing rolls back.
func TestAGuardIsJudgedNoMoreOnceTheEndHasBegun(t *testing.T) {
	w := newWorld(t, "g", "a")
	w.guard("g")
	w.breaks("hand over")
	w.replies["hand over"] = []reply{{err: errLost, lost: true}}
	w.run()
	require.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
	assert.NotNil(t, w.stored.Status.GuardTime)
	assert.Less(t, w.clock.Since(w.stored.Status.GuardTime.Time), time.Minute)
}
