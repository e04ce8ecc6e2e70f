package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
)

// expiring are the scenarios in which a Transaction goes by itself after its end.
var expiring = []scenario{
	{"its time after its end is over", []string{"a"}, func(w *world) {
		w.stored.Spec.TTLSecondsAfterFinished = ptr[int32](60)
	}, ""},
	{"it goes right after its end", []string{"a", "b"}, func(w *world) {
		w.stored.Spec.TTLSecondsAfterFinished = ptr[int32](0)
		refuseB(w)
	}, ""},
	{"the answer to its deletion is lost", []string{"a"}, func(w *world) {
		w.stored.Spec.TTLSecondsAfterFinished = ptr[int32](0)
		w.replies["delete the Transaction"] = []reply{{err: errLost}, {err: errLost, lost: true}}
	}, ""},
	{"somebody writes it when its time is over", []string{"a"}, func(w *world) {
		w.stored.Spec.TTLSecondsAfterFinished = ptr[int32](0)
		w.after["checkpoint 5"] = func() { w.cancel(api.CancelRollback) }
	}, ""},
	{"what could not be taken back keeps it", []string{"a", "b"}, func(w *world) {
		w.stored.Spec.TTLSecondsAfterFinished = ptr[int32](0)
		w.after["do a"] = func() { w.cancel(api.CancelStop) }
	}, api.PhaseFailed},
}

func TestExpiryIsOfWhatHasEndedAndIsNotWanted(t *testing.T) {
	ended := func(phase api.Phase, states ...api.ItemState) *api.Transaction {
		txn := with(phase, states...)
		txn.Spec.TTLSecondsAfterFinished = ptr[int32](90)
		return txn
	}
	for name, txn := range map[string]*api.Transaction{
		"committed":         ended(api.PhaseCommitted, api.ItemCommitted),
		"rolled back":       ended(api.PhaseRolledBack, api.ItemRolledBack),
		"failed in time":    ended(api.PhaseFailed, api.ItemPending),
		"failed and undone": ended(api.PhaseFailed, api.ItemRolledBack, api.ItemRejected),
	} {
		at, ok := Expiry(txn)
		assert.True(t, ok, name)
		assert.Equal(t, start.Add(90*time.Second), at.UTC(), name)
	}
	forEver := ended(api.PhaseCommitted, api.ItemCommitted)
	forEver.Spec.TTLSecondsAfterFinished = nil
	for name, txn := range map[string]*api.Transaction{
		"no time given":  forEver,
		"running":        ended(api.PhaseCommitting, api.ItemCommitted),
		"not taken back": ended(api.PhaseFailed, api.ItemUnresolved),
		"being deleted":  deleted(api.DeleteRelease, ended(api.PhaseCommitted, api.ItemCommitted)),
	} {
		_, ok := Expiry(txn)
		assert.False(t, ok, name)
	}
}
