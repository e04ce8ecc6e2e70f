package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// A change that is waited for is in effect. An Await is only when what it waits for is so.
func TestProgressCountsAnAwaitWhenItHolds(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))
	change := api.Item{Type: api.Patch, State: api.ItemCommitted, Committed: true, WaitStartTime: &now}
	await := api.Item{Type: api.Await, State: api.ItemCommitted, Committed: true, WaitStartTime: &now}
	held, failed := await, await
	held.ReadyTime, failed.Failed = &now, true
	for want, items := range map[string][]api.Item{
		"1/2": {change, await}, "2/2": {change, held}, "0/1": {await}, "1/3": {change, await, failed},
	} {
		txn := &api.Transaction{}
		txn.Status.Phase, txn.Status.Items = api.PhaseCommitting, items
		txn.Spec.Changes = make([]api.Change, len(items))
		plan.Summarize(txn, now.Time)
		assert.Equal(t, want, txn.Status.Progress)
	}
}
