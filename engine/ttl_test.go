package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// expiring are the scenarios in which a Transaction goes by itself after its end.
var expiring = []scenario{
	{"its time after its end is over", []string{"a"}, func(w *world) {
		w.stored.Spec.TTLSecondsAfterFinished = ptr.To[int32](60)
	}, ""},
	{"it goes right after its end", []string{"a", "b"}, func(w *world) {
		w.stored.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
		refuseB(w)
	}, ""},
	{"the answer to its deletion is lost", []string{"a"}, func(w *world) {
		w.stored.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
		w.replies["delete the Transaction"] = []reply{{err: errLost}, {err: errLost, lost: true}}
	}, ""},
	{"somebody writes it when its time is over", []string{"a"}, func(w *world) {
		w.stored.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
		w.after["checkpoint 4"] = func() { w.cancel(api.CancelRollback) }
	}, ""},
	{"it is retired", []string{"a"}, func(w *world) {
		w.after["checkpoint 4"] = w.retire
	}, ""},
	{"it is retired while something is left to roll back", []string{"a", "b"}, func(w *world) {
		w.after["do a"] = func() { w.cancel(api.CancelStop); w.retire() }
	}, api.PhaseFailed},
	{"it is retired while it runs", []string{"a", "b"}, func(w *world) {
		w.after["do a"] = func() { w.retire(); w.engine.Retire(nil) }
	}, api.PhaseCommitted},
	{"what could not be rolled back keeps it", []string{"a", "b"}, func(w *world) {
		w.stored.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
		w.after["do a"] = func() { w.cancel(api.CancelStop) }
	}, api.PhaseFailed},
}

func (w *world) retire() {
	w.say("-- there are enough that have ended later")
	w.engine.Retire(map[types.UID]bool{w.stored.UID: true})
}

func TestWhatCanBeUndoneIsNotRetired(t *testing.T) {
	w := newWorld(t, "a")
	w.stored.Spec.RevisionHistoryLimit = ptr.To[int32](3)
	w.after["do a"] = w.retire
	w.run()
	w.run()
	assert.NotNil(t, w.stored)
	assert.True(t, plan.CanBeUndone(w.stored))

	w = newWorld(t, "a", "b").goesOn()
	w.stored.Spec.RevisionHistoryLimit = ptr.To[int32](3)
	w.refuse["do b"] = errRefused
	w.after["do a"] = w.retire
	w.run()
	w.run()
	assert.NotNil(t, w.stored)
	assert.True(t, plan.CanBeUndone(w.stored), "what was made in part")
}
