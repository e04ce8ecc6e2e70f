package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
	"janus.io/janus/internal/errclass"
)

// What is waited for is looked at while other changes are made, or wait themselves.

// besideOthers has b wait for a to be ready, and c, d and e for nothing.
func besideOthers(t *testing.T) *world {
	w := newWorld(t, "a", "b", "c", "d", "e").wide(0)
	w.stored.Spec.Parallelism = ptr.To(int32(2))
	w.waitsFor("a", "10s")
	w.needs("b", "a")
	return w
}

// terminating has a change wait for a finalizer for longer than anyone waits here.
func (w *world) terminating(name string) {
	w.refuse["do "+name] = errclass.New(errclass.Retryable, errclass.Terminating, "delete", "ConfigMap shop/"+name, "it is being deleted")
}

func TestWhatFailsIsSeenWhileOtherChangesAreMade(t *testing.T) {
	w := besideOthers(t)
	w.unready["a"] = Readiness{Failed: true, Message: "a is Failed"}
	for _, name := range []string{"a", "c", "d", "e"} {
		w.after["do "+name] = func() { w.clock.Step(20 * time.Second) }
	}
	w.run()
	assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	assert.Empty(t, w.dos["d"]+w.dos["e"], "nothing more is begun:\n%s", w.transcript())
	assert.Equal(t, errclass.ReadyFailed, w.stored.Status.Items[0].Reason)
	oracle(t, w)
}

func TestWhatFailsIsSeenWhileAnotherChangeWaits(t *testing.T) {
	w := besideOthers(t)
	w.unready["a"] = Readiness{Failed: true, Message: "a is Failed"}
	w.terminating("c")
	w.run()
	assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	assert.Equal(t, errclass.ReadyFailed, w.stored.Status.Items[0].Reason)
	assert.Less(t, w.clock.Now().Sub(fixture.Start), 5*time.Second+testPolicy.SettleTime, w.transcript())
}

func TestTheTimeToBeReadyIsOverWhileAnotherChangeWaits(t *testing.T) {
	w := besideOthers(t)
	w.terminating("c")
	var ended time.Duration
	w.nth = func(_ int, _ string) reply {
		if ended == 0 && w.stored.Status.Phase == api.PhaseRollingBack {
			ended = w.clock.Now().Sub(fixture.Start)
		}
		return reply{}
	}
	w.run()
	assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	assert.Equal(t, errclass.ReadyTimeout, w.stored.Status.Items[0].Reason)
	assert.LessOrEqual(t, ended, 12*time.Second, w.transcript())
}

// A change that waits long for another is not begun later because of a third.
func TestWhatBecomesReadyWhileAnotherChangeWaitsLetsOthersBegin(t *testing.T) {
	w := besideOthers(t)
	w.terminating("c")
	w.after["-- looks again"] = func() { delete(w.unready, "a") }
	w.after["do b"] = func() { delete(w.refuse, "do c") }
	w.run()
	assert.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
	oracle(t, w)
}

// While changes are made it is looked every second, and not after each.
func TestToLookCostsLittleWhileOtherChangesAreMade(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d", "e", "f", "g", "h").wide(0)
	w.stored.Spec.Order, w.stored.Spec.Parallelism = api.OrderGraph, ptr.To(int32(2))
	w.waitsFor("a", "1h")
	for _, name := range []string{"b", "c", "d", "e", "f", "g", "h"} {
		w.after["do "+name] = func() { w.clock.Step(300 * time.Millisecond) }
	}
	w.after["do h"] = func() { delete(w.unready, "a") }
	w.run()
	assert.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
	assert.LessOrEqual(t, strings.Count(w.transcript(), "look at a"), 4, w.transcript())
	oracle(t, w)
}

// Nobody looks any more once the Transaction is deleted: what it still waits for is not
// asked for sooner because a change was not ready in time.
func TestWhatWasNotReadyInTimeIsNoReasonToHurryOnceItIsDeleted(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.waitsFor("a", "10s")
	w.needs("b", "a")
	w.after["-- looks again"] = func() {
		w.say("-- another process goes on")
		w.restart()
		w.clock.Step(20 * time.Second)
		w.delete()
	}
	w.run()
	assert.Contains(t, w.transcript(), "cannot take effect any more", "it waits")
	assert.LessOrEqual(t, strings.Count(w.transcript(), "-- looks again"), int(testPolicy.SettleTime/time.Second)+1, w.transcript())
	assert.Nil(t, w.stored, w.transcript())
}

// waitingForAll has four changes that are waited for, of which a look takes so long.
func waitingForAll(t *testing.T, slow time.Duration) *world {
	w := newWorld(t, "a", "b", "c", "d").wide(0)
	w.stored.Spec.Parallelism, w.stored.Spec.Order = ptr.To(int32(4)), api.OrderGraph
	for _, name := range []string{"a", "b", "c", "d"} {
		w.waitsFor(name, "1h")
	}
	w.slow = slow
	return w
}

// looks are the items that were looked at, in order.
func (w *world) looks() (out []string) {
	for _, line := range w.lines {
		if name, ok := strings.CutPrefix(line, "look at "); ok && strings.Contains(name, ":") {
			out = append(out, name[:1])
		}
	}
	return out
}

// A look at very many changes is made in steps, so that the end of the Transaction's time is seen in between.
// What is missing is told once all were looked at.
func TestALookThatTakesLongIsMadeInSteps(t *testing.T) {
	w := waitingForAll(t, 6*time.Second)
	w.after["-- looks again"] = func() {
		said := meta.FindStatusCondition(w.stored.Status.Conditions, api.ConditionReconciling).Message
		for _, name := range []string{"a", "b", "c", "d"} {
			assert.Contains(t, said, "ConfigMap shop/"+name+": 1 of 2")
		}
		assert.Equal(t, []string{"a", "b", "c", "d"}, w.looks()[len(w.looks())-4:])
		_, after, _ := strings.Cut(w.transcript(), "checkpoint 3")
		assert.Equal(t, 2, strings.Count(after, "keep the locks"), "in two steps:\n%s", w.transcript())
		clear(w.unready)
	}
	w.run()
	assert.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())

	w = waitingForAll(t, 6*time.Second)
	w.stored.Spec.Timeout = ptr.To(api.Duration("10s"))
	w.run()
	assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	assert.NotContains(t, w.looks(), "d", "its time is over before")
}

// Who gives up the worker in the middle of a look goes on with the others when it has one again: none is
// never looked at.
func TestALookThatMakesRoomIsResumed(t *testing.T) {
	w := waitingForAll(t, 0)
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		w.after["look at"] = cancel
		w.engine.Run(ctx, w.stored.DeepCopy())
		cancel()
		delete(w.after, "look at")
		w.clock.Step(time.Second)
		if len(w.looks()) >= 12 {
			break
		}
	}
	assert.Equal(t, []string{"a", "b", "c", "d", "a", "b", "c", "d"}, w.looks()[len(w.looks())-8:], w.transcript())
}
