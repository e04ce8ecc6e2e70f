package ui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
)

func after(d time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(noon.Add(d))) }

// reconciling sets what a Transaction says that it is doing, or waits for.
func reconciling(t *api.Transaction, reason, message string) {
	t.Status.Conditions = []metav1.Condition{
		{Type: api.ConditionReady, Status: "False", Reason: reason, Message: message, LastTransitionTime: noon},
		{Type: api.ConditionReconciling, Status: "True", Reason: reason, Message: message, LastTransitionTime: noon},
		{Type: api.ConditionValidated, Status: "True", Reason: "AllValidationsPassed", LastTransitionTime: *after(time.Second)},
	}
}

// two is a Transaction with two Deployments that are made and waited for, and a ConfigMap that is done.
func two() *api.Transaction {
	t := transaction("two", api.PhaseCommitting)
	minutes := api.Duration("5m")
	for _, name := range []string{"web", "api"} {
		target := api.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
		t.Spec.Changes = append(t.Spec.Changes, api.Change{Name: name, Type: api.Patch, Target: target, ReadyWhen: &api.ReadyWhen{Status: api.StatusReady, Timeout: &minutes}})
		t.Status.Items = append(t.Status.Items, api.Item{Name: name, Target: target, State: api.ItemCommitted, Committed: true, WaitStartTime: after(time.Minute)})
	}
	config := api.Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "config"}
	t.Spec.Changes = append(t.Spec.Changes, api.Change{Name: "config", Type: api.Patch, Target: config})
	t.Status.Items = append(t.Status.Items, api.Item{Name: "config", Target: config, State: api.ItemCommitted, Committed: true})
	t.Status.Progress = "3/3"
	reconciling(t, "NotReady", "waiting for Deployment shop/web: 1/3 Pods ready; quota exceeded; Deployment shop/api: 0/2 Pods updated")
	return t
}

// What is made and waited for is not done, and says what it lacks.
func TestAChangeThatIsWaitedForIsWaiting(t *testing.T) {
	txn := two()
	s := summaryOf(txn)
	assert.Equal(t, "Waiting", s.State)
	assert.Equal(t, []int{1, 2, 3}, []int{s.Done, s.Waiting, s.Total})
	assert.Equal(t, &Wait{Item: "web", Since: "2026-03-01T12:01:00Z", Limit: 300, For: "1/3 Pods ready; quota exceeded"}, s.Wait)
	assert.Equal(t, 1, s.More)
	items := itemsOf(txn)
	assert.Equal(t, []string{"Waiting", "Waiting", "Committed"}, []string{items[0].State, items[1].State, items[2].State})
	assert.Equal(t, "0/2 Pods updated", items[1].Wait.For)
	assert.Nil(t, items[2].Wait)

	txn.Status.Items[0].ReadyTime = after(2 * time.Minute)
	s = summaryOf(txn)
	assert.Equal(t, []int{2, 1, 3}, []int{s.Done, s.Waiting, s.Total})
	assert.Equal(t, "api", s.Wait.Item)
}

// In a rollback what was made is not waited for any more, and what is restored may be.
func TestARollbackWaitsForWhatIsRestored(t *testing.T) {
	txn := two()
	txn.Status.Phase = api.PhaseRollingBack
	txn.Spec.Changes[1].Rollback = &api.ChangeRollback{ReadyWhen: api.ReadyWhen{Status: api.StatusReady, Timeout: ptr.To(api.Duration("90s"))}}
	txn.Status.Items[1].State, txn.Status.Items[1].RollbackWait = api.ItemRollingBack, &api.RollbackWait{StartTime: after(3 * time.Minute)}
	items := itemsOf(txn)
	assert.Equal(t, []string{"Committed", "Waiting"}, []string{items[0].State, items[1].State})
	assert.Equal(t, &Wait{Item: "api", Since: "2026-03-01T12:03:00Z", Limit: 90, For: "0/2 Pods updated"}, items[1].Wait)

	txn.Status.Phase = api.PhaseRolledBack
	assert.Empty(t, waitsOf(txn), "what has ended waits for nothing")
	assert.Equal(t, "RolledBack", stateOf(txn))
}

// A Transaction says what it waits for as a whole, and since when as far as that is on record.
func TestATransactionWaitsForMoreThanItems(t *testing.T) {
	for _, c := range []struct {
		reason string
		so     func(*api.TransactionStatus)
		since  string
	}{
		{reason: "LockHeld", since: "2026-03-01T12:00:01Z"},
		{reason: "Suspended", so: func(s *api.TransactionStatus) { s.SuspendTime = after(time.Hour) }, since: "2026-03-01T13:00:00Z"},
		{reason: "AwaitingApproval", so: func(s *api.TransactionStatus) { s.Approval = &api.ApprovalStatus{RequestTime: after(2 * time.Hour)} }, since: "2026-03-01T14:00:00Z"},
		{reason: "ServerError"},
	} {
		txn := transaction("waits", api.PhasePreparing)
		reconciling(txn, c.reason, "why")
		if c.so != nil {
			c.so(&txn.Status)
		}
		s := summaryOf(txn)
		assert.Equal(t, "Waiting", s.State, c.reason)
		assert.Equal(t, &Wait{Since: c.since, For: "why"}, s.Wait, c.reason)
	}
	runs := transaction("runs", api.PhasePreparing)
	reconciling(runs, "Preparing", "taking the locks")
	assert.Equal(t, "Running", stateOf(runs))
	assert.Empty(t, waitsOf(runs))
}

// The numbers are those of the changes that are wanted, before and after the end.
func TestTheCountsAreThoseOfTheChanges(t *testing.T) {
	counts := func(txn *api.Transaction) []int {
		done, waiting, total := countsOf(txn)
		return []int{done, waiting, total}
	}
	txn := two()
	txn.Status.Items[2].State, txn.Status.Items[2].Committed = api.ItemSkipped, false
	assert.Equal(t, []int{0, 2, 2}, counts(txn), "what is skipped is not wanted")
	txn.Status.Items[2].Failed = true
	assert.Equal(t, []int{0, 2, 3}, counts(txn), "what has failed is")
	txn.Status.Phase, txn.Status.Progress = api.PhaseRolledBack, "0/3"
	assert.Equal(t, []int{0, 0, 3}, counts(txn))
	txn.Status = api.TransactionStatus{}
	assert.Equal(t, []int{0, 0, 3}, counts(txn), "nobody has looked at it yet")
}

func TestWhoHasMadeATransaction(t *testing.T) {
	entry := func(manager, fields, subresource string, at time.Duration) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: after(at), FieldsV1: metav1.NewFieldsV1(fields)}
	}
	txn := transaction("a", "")
	assert.Empty(t, creatorOf(txn))
	txn.ManagedFields = []metav1.ManagedFieldsEntry{
		entry("janusd", `{"f:metadata":{"f:finalizers":{}}}`, "", 0),
		entry("editor", `{"f:spec":{"f:changes":{}}}`, "", time.Minute),
		entry("argocd", `{"f:spec":{"f:changes":{}}}`, "", 0),
		entry("status", `{"f:changes":{}}`, "status", 0),
	}
	assert.Equal(t, "argocd", creatorOf(txn))
	txn.ManagedFields[2].FieldsV1.SetRawString(`{"f:spec":{"f:undoOf":{}}}`)
	assert.Equal(t, "argocd", creatorOf(txn))
	txn.OwnerReferences = []metav1.OwnerReference{{Kind: "PackageTransaction", Name: "install"}}
	assert.Equal(t, "PackageTransaction install", creatorOf(txn))
}
