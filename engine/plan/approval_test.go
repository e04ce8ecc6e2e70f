package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
)

// standingPlan is a Transaction whose plan stands since the start.
func standingPlan(edits ...func(*api.Transaction)) *api.Transaction {
	t := with(api.PhasePending, api.ItemPending, api.ItemPending)
	t.Spec.Approval = &api.Approval{Required: true}
	for i := range t.Status.Items {
		t.Status.Items[i].Plan = &api.Plan{Effect: api.EffectChange, Digest: "d"}
	}
	for _, edit := range edits {
		edit(t)
	}
	Stand(t, &t.Status, "acc0", metav1.NewTime(fixture.Start))
	return t
}

func approvedBy(name string) func(*api.Transaction) {
	return func(t *api.Transaction) {
		t.Annotations = map[string]string{api.ApprovedPlanAnnotation: t.Status.Approval.Digest, api.ApprovedByAnnotation: name}
	}
}

func TestEverythingThatIsShownIsInTheDigest(t *testing.T) {
	plain := standingPlan()
	assert.Len(t, plain.Status.Approval.Digest, 64)
	assert.Equal(t, plain.Status.Approval, standingPlan().Status.Approval, "the same is the same")
	for name, edit := range map[string]func(*api.Transaction){
		"another Transaction":     func(t *api.Transaction) { t.UID = "other" },
		"another spec":            func(t *api.Transaction) { t.Spec.OnDelete = api.DeleteRollback },
		"another content":         func(t *api.Transaction) { t.Status.Items[1].ContentDigest = "other" },
		"another object":          func(t *api.Transaction) { t.Status.Items[1].Target.Name = "other" },
		"another namespace":       func(t *api.Transaction) { t.Status.Items[1].Target.Namespace = "other" },
		"another effect":          func(t *api.Transaction) { t.Status.Items[1].Plan.Effect = api.EffectDelete },
		"another result":          func(t *api.Transaction) { t.Status.Items[1].Plan.Digest = "other" },
		"an item that is skipped": func(t *api.Transaction) { SetItemState(&t.Status.Items[1], api.ItemSkipped) },
		"another Transaction undone": func(t *api.Transaction) {
			t.Status.Undoing = &api.Undoing{UndoneRevision: api.UndoneRevision{Name: "other"}}
		},
		"a later plan": func(t *api.Transaction) { t.Status.Approval = &api.ApprovalStatus{Plans: 1} },
	} {
		assert.NotEqual(t, plain.Status.Approval.Digest, standingPlan(edit).Status.Approval.Digest, name)
	}
	suspended := standingPlan(func(t *api.Transaction) { t.Spec.Suspend = true })
	assert.Equal(t, plain.Status.Approval.Digest, suspended.Status.Approval.Digest, "suspend and cancel are no part of what is done")
}

func TestWhatATransactionDoesWhosePlanStands(t *testing.T) {
	now := fixture.Start
	end := now.Add(DefaultApprovalTimeout + time.Second)
	assert.Equal(t, Action{Verb: Await, At: end}, Decide(standingPlan(), InFlight{}, now, limits))
	decided := func(at time.Time, edits ...func(*api.Transaction)) Verb {
		txn := standingPlan()
		for _, edit := range edits {
			edit(txn)
		}
		return Decide(txn, InFlight{}, at, limits).Verb
	}
	jane := approvedBy("jane")
	assert.Equal(t, Approve, decided(now, jane))
	assert.Equal(t, Approve, decided(end.Add(time.Hour), jane), "janusd was away, and the approval came in time")
	assert.Equal(t, Fail, decided(end))
	assert.Equal(t, Await, decided(now, approvedBy("")), "nobody says that they approve it")
	assert.Equal(t, Await, decided(now, jane, func(t *api.Transaction) { t.Status.Approval.Digest = "other" }))
	assert.Equal(t, Await, decided(now.Add(48*time.Hour)), "spec.timeout is not what bounds it")
	assert.Equal(t, Suspend, decided(now, jane, func(t *api.Transaction) { t.Spec.Suspend = true }))
	assert.Equal(t, Fail, decided(now, jane, func(t *api.Transaction) { t.Spec.Cancel = api.CancelRollback }))
	assert.Equal(t, Abandon, decided(now, jane, func(t *api.Transaction) { t.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }))

	accepted := standingPlan()
	jane(accepted)
	Accept(accepted, &accepted.Status, metav1.NewTime(now.Add(time.Minute)))
	accepted.Status.Phase = api.PhasePreparing
	assert.Equal(t, Prepare, Decide(accepted, InFlight{}, now, limits).Verb)
	assert.Equal(t, "jane", accepted.Status.Approval.ApprovedBy)
	assert.EqualValues(t, 60, accepted.Status.Approval.WaitedSeconds)
	assert.False(t, Overdue(accepted, now.Add(DefaultTimeout+time.Minute)))
	assert.True(t, Overdue(accepted, now.Add(DefaultTimeout+time.Minute+time.Second)))
	Outdate(&accepted.Status, []string{"a"})
	assert.Equal(t, StandAgain, Decide(accepted, InFlight{}, now, limits).Verb)
	accepted.Status.Phase = api.PhasePending
	assert.Equal(t, Validate, Decide(accepted, InFlight{}, now, limits).Verb)
	Stand(accepted, &accepted.Status, "acc0", metav1.NewTime(now))
	assert.EqualValues(t, 2, accepted.Status.Approval.Plans)
	assert.Empty(t, ApprovedBy(accepted), "the approval was of another plan")
}

func TestWhichPlansHaveChanged(t *testing.T) {
	items := []api.Item{
		{Name: "same", Plan: &api.Plan{Effect: api.EffectChange, Digest: "1"}},
		{Name: "other", Plan: &api.Plan{Effect: api.EffectChange, Digest: "1"}},
		{Name: "refused now", Plan: &api.Plan{Effect: api.EffectChange, Digest: "1"}},
		{Name: "not known before", Plan: &api.Plan{Effect: api.EffectDeferred}},
		{Name: "without a plan"},
		{Name: "not looked at", Plan: &api.Plan{Effect: api.EffectChange, Digest: "1"}},
	}
	assert.Equal(t, []string{"other", "refused now", "without a plan"}, PlansChanged(items, []int{0, 1, 2, 3, 4}, []string{"1", "2", "", "3", ""}))
	status := &api.TransactionStatus{Approval: &api.ApprovalStatus{Digest: "d", ApprovedBy: "jane"}}
	Outdate(status, make([]string, 1000))
	assert.Len(t, status.Approval.Changed, maxChangedPlans)
}

func TestAnApprovalIsDescribed(t *testing.T) {
	txn := standingPlan()
	digest := txn.Status.Approval.Digest
	assert.Equal(t, "plan 1 "+digest+" waits since 2030-01-02T03:04:05Z", txn.DescribeApproval())
	approvedBy("jane")(txn)
	Accept(txn, &txn.Status, metav1.NewTime(fixture.Start))
	assert.Equal(t, "plan 1 "+digest+", by jane at 2030-01-02T03:04:05Z", txn.DescribeApproval())
	Outdate(&txn.Status, nil)
	assert.Equal(t, "another plan is made", txn.DescribeApproval())
	ended := standingPlan()
	ended.Status.Phase = api.PhaseFailed
	assert.Equal(t, "plan 1 "+ended.Status.Approval.Digest+" was not approved", ended.DescribeApproval())
	assert.Empty(t, with(api.PhaseCommitted, api.ItemCommitted).DescribeApproval())
}
