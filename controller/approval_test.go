package controller

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// trimmed is what the informer keeps of a Transaction.
func trimmed(t *testing.T, txn *api.Transaction) *summary {
	t.Helper()
	text, err := json.Marshal(txn)
	require.NoError(t, err)
	var is decoded
	require.NoError(t, json.Unmarshal(text, &is))
	kept, err := trim(&is)
	require.NoError(t, err)
	out, ok := kept.(*summary)
	require.True(t, ok)
	return out
}

// standing is a Transaction whose plan waits for approval.
func standing() *api.Transaction {
	txn := at(api.PhasePending, plan.AwaitingApproval, "plan 4711 waits for approval", plan.AwaitingApproval, "plan 4711 waits for approval")
	txn.Spec.Approval = &api.Approval{Required: true}
	txn.Status.Approval = &api.ApprovalStatus{Plans: 1, Digest: "4711"}
	return txn
}

func TestAPlanThatWaitsIsCountedAndItsApprovalWorthALook(t *testing.T) {
	t.Parallel()
	waits := standing()
	before := trimmed(t, waits)
	assert.True(t, before.standing)
	waits.Annotations = map[string]string{api.ApprovedPlanAnnotation: "4711", api.ApprovedByAnnotation: "jane"}
	waits.ResourceVersion = "2"
	after := trimmed(t, waits)
	assert.True(t, worthALook(before, after), "the annotations are no new generation")
	waits.ResourceVersion = "3"
	assert.False(t, worthALook(after, trimmed(t, waits)))
	waits.Status.Phase, waits.Status.Approval.ApprovalTime = api.PhasePreparing, ptr.To(metav1.Now())
	assert.False(t, trimmed(t, waits).standing)
}

func TestEventsTellOfApprovals(t *testing.T) {
	t.Parallel()
	w, r, _ := newRecorder(t)
	approved := at(api.PhasePreparing, "Preparing", "taking the locks")
	approved.Spec, approved.Status.Approval = standing().Spec, &api.ApprovalStatus{Plans: 1, Digest: "4711", ApprovedBy: "jane", ApprovalTime: ptr.To(metav1.Now())}
	outdated := at(api.PhasePreparing, "Preparing", "taking the locks")
	outdated.Spec, outdated.Status.Approval = standing().Spec, &api.ApprovalStatus{Plans: 1, Changed: []string{"a", "b"}}
	for _, step := range [][2]*api.Transaction{{at("", "", ""), standing()}, {standing(), approved}, {approved, outdated}} {
		w.Checkpointed(step[0], step[1])
	}
	assert.Equal(t, []recorded{
		{"Normal", "AwaitingApproval", "Transact", "plan 4711 waits for approval"},
		{"Normal", "Approved", "Transact", "jane approved plan 4711"},
		{"Warning", "PlanChanged", "Transact", "plan 4711, which jane approved, has changed: items a, b would do something else now"},
	}, r.events)
}
