package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

var (
	errInvalid   = errclass.New(errclass.Terminal, errclass.Invalid, "restore", "ConfigMap shop/x", "its schema does not allow it")
	errForbidden = errclass.New(errclass.Terminal, errclass.AccessDenied, "restore", "ConfigMap shop/x", "may not patch it")
)

// errAddress is how the API server refuses an address that it holds itself.
var errAddress = &errclass.Error{
	Op: "restore", Target: "Service shop/x", Class: errclass.Terminal, Reason: errclass.AlreadyAllocated,
	Refuser: errclass.ByAddress, Err: errors.New("provided IP is already allocated"),
}

// invalidUntil has the compensation of one item refused until that of another is made.
func (w *world) invalidUntil(item, other string) {
	w.refuse["undo "+item] = errInvalid
	w.onceUndone(other, func() { delete(w.refuse, "undo "+item) })
}

// onceUndone acts when an item is rolled back, and not when it is refused.
func (w *world) onceUndone(item string, act func()) {
	w.after["undo "+item] = func() {
		if w.undos[item] == 0 {
			w.onceUndone(item, act)
			return
		}
		act()
	}
}

// asides are what happens to a compensation that another one makes possible.
var asides = []scenario{
	{"a compensation becomes possible when an earlier change is rolled back", []string{"a", "b", "c", "d"}, func(w *world) {
		w.refuse["do d"] = errRefused
		w.invalidUntil("c", "a")
	}, api.PhaseRolledBack},
	{"what was rolled back takes effect late", []string{"a", "b", "c"}, func(w *world) {
		w.refuse["do c"] = errRefused
		w.refuse["undo b"] = errInvalid
		w.after["-- looks again in 250ms"] = func() { delete(w.refuse, "undo b") }
	}, api.PhaseRolledBack},
	{"compensations become possible one after the other", []string{"a", "b", "c", "d"}, func(w *world) {
		w.refuse["do d"] = errRefused
		w.invalidUntil("b", "a")
		w.invalidUntil("c", "b")
	}, api.PhaseRolledBack},
	{"nothing makes a compensation possible", []string{"a", "b", "c", "d"}, func(w *world) {
		w.refuse["do d"] = errRefused
		w.refuse["undo b"], w.refuse["undo c"] = errInvalid, errForbidden
	}, api.PhaseFailed},
	{"no compensation is possible", []string{"a", "b", "c"}, func(w *world) {
		w.refuse["do c"] = errRefused
		w.refuse["undo a"], w.refuse["undo b"] = errInvalid, errInvalid
	}, api.PhaseFailed},
	{"the later change of an object is set aside, and so the earlier one", []string{"b", "a1", "a2", "c"}, func(w *world) {
		w.refuse["do c"] = errRefused
		w.invalidUntil("a2", "b")
	}, api.PhaseRolledBack},
	{"the API server holds the address of the only Service", []string{"a", "b"}, func(w *world) {
		w.refuse["do b"] = errRefused
		w.refuse["undo a"] = errAddress
		w.after["-- looks again in 4s"] = func() { delete(w.refuse, "undo a") }
	}, api.PhaseRolledBack},
	{"it is suspended while a compensation is set aside, and goes on", []string{"a", "b", "c"}, func(w *world) {
		w.refuse["do c"] = errRefused
		w.refuse["undo b"] = errInvalid
		w.after["undo a"] = func() {
			delete(w.refuse, "undo b")
			w.suspend()
			w.after[atRest] = w.resume
		}
	}, api.PhaseRolledBack},
	{"it is stopped while a compensation is set aside", []string{"a", "b", "c"}, func(w *world) {
		w.refuse["do c"] = errRefused
		w.refuse["undo b"] = errInvalid
		w.after["undo a"] = func() { w.cancel(api.CancelStop) }
	}, api.PhaseFailed},
	{"a recovery makes another compensation possible", []string{"a", "b", "c"}, func(w *world) {
		w.refuse["do c"] = errRefused
		w.refuse["undo a"] = errForbidden
		w.invalidUntil("b", "a")
		w.after["-- looks again in 10s"] = func() { delete(w.refuse, "undo a") }
	}, api.PhaseRolledBack},
}

func TestWhatSomebodyAsksForIsTriedAgainOnceWhateverTheReason(t *testing.T) {
	for _, reason := range []string{
		errclass.Invalid, errclass.Drifted, errclass.FieldConflict, errclass.AlreadyExists, errclass.ControllerMade, errclass.OwnerGone,
		errclass.Irreversible, errclass.TooLarge, errclass.BeforeImageLost, errclass.AccessDenied,
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, "a", "b")
			w.policy.Recoveries = 0
			w.restart()
			refuseB(w)
			w.refuse["undo a"] = errclass.New(errclass.Terminal, reason, "restore", "ConfigMap shop/a", "no")
			w.run()
			require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())

			w.ask("1")
			w.run()
			require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
			assert.Equal(t, 2, strings.Count(w.transcript(), "undo a: fails"), "one more attempt for what was asked:\n%s", w.transcript())

			w.run()
			assert.Equal(t, 2, strings.Count(w.transcript(), "undo a: fails"), "and none when it was not asked again")

			delete(w.refuse, "undo a")
			w.ask("2")
			w.run()
			assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
			assert.Zero(t, w.stored.Status.Recoveries, "those that janusd makes by itself are counted apart")
			oracle(t, w)
		})
	}
}

// ask is what kubectl janus recover --now does.
func (w *world) ask(what string) {
	w.say("-- somebody asks for a recovery")
	w.stored.Annotations = map[string]string{api.RecoverAnnotation: what}
	w.bump()
}

func TestNobodyWaitsForTheTimeoutForWhatWaitingCannotHeal(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.policy.Recoveries = 0
	w.restart()
	w.refuse["do c"] = errRefused
	w.refuse["undo b"] = errInvalid
	w.run()
	require.Equal(t, api.PhaseFailed, phaseOf(w))
	assert.Less(t, w.clock.Since(fixture.Start), 10*time.Second, w.transcript())
	assert.Equal(t, errclass.Invalid, w.itemOfName("b").Reason)
	assert.Equal(t, api.ItemRolledBack, w.itemOfName("a").State)
}

func TestWhatTheControlPlaneCountsLateIsWaitedForNoLongerThanThat(t *testing.T) {
	for name, c := range map[string]struct {
		by              errclass.Refuser
		timeout         time.Duration
		atLeast, atMost time.Duration
		changes         []string
	}{
		"an address":              {errclass.ByAddress, time.Hour, plan.DefaultAddressTime, plan.DefaultAddressTime + 2*lateInterval, []string{"a", "z"}},
		"one of several":          {errclass.ByAddress, time.Hour, plan.DefaultAddressTime, plan.DefaultAddressTime + 2*lateInterval, []string{"a", "b", "c", "z"}},
		"its time is over before": {errclass.ByAddress, 30 * time.Second, 25 * time.Second, 40 * time.Second, []string{"a", "z"}},
		"a quota":                 {errclass.ByFullQuota, time.Hour, plan.DefaultQuotaTime, plan.DefaultQuotaTime + 2*lateInterval, []string{"a", "z"}},
		"a port":                  {errclass.ByAllocation, time.Hour, 0, 10 * time.Second, []string{"a", "z"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.changes...)
			w.policy.Recoveries = 0
			w.restart()
			w.stored.Spec.Timeout = ptr.To(api.Duration(c.timeout.String()))
			w.refuse["do z"] = errRefused
			refusal := *errAddress
			refusal.Refuser = c.by
			w.refuse["undo a"] = &refusal
			w.run()
			require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
			assert.Equal(t, errclass.AlreadyAllocated, w.itemOfName("a").Reason)
			took := w.clock.Since(fixture.Start)
			assert.GreaterOrEqual(t, took, c.atLeast, w.transcript())
			assert.LessOrEqual(t, took, c.atMost, w.transcript())
		})
	}
}

func (w *world) itemOfName(name string) api.Item {
	return w.stored.Status.Items[plan.IndexOf(w.stored.Status.Items, name)]
}
