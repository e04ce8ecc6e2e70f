package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
)

func TestExpiryIsOfWhatHasEndedAndIsNotWanted(t *testing.T) {
	ended := func(phase api.Phase, states ...api.ItemState) *api.Transaction {
		txn := with(phase, states...)
		txn.Spec.TTLSecondsAfterFinished = ptr.To[int32](90)
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
		assert.Equal(t, fixture.Start.Add(90*time.Second), at.UTC(), name)
	}
	forEver := ended(api.PhaseCommitted, api.ItemCommitted)
	forEver.Spec.TTLSecondsAfterFinished = nil
	for name, txn := range map[string]*api.Transaction{
		"no time given":   forEver,
		"running":         ended(api.PhaseCommitting, api.ItemCommitted),
		"not rolled back": ended(api.PhaseFailed, api.ItemUnresolved),
		"being deleted":   deleted(api.DeleteRelease, ended(api.PhaseCommitted, api.ItemCommitted)),
	} {
		_, ok := Expiry(txn)
		assert.False(t, ok, name)
	}
}
