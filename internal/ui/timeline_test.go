package ui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
)

func at(minutes int) string { return stamp(after(time.Duration(minutes) * time.Minute)) }

func conditionSince(kind, status string, minutes int) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: "OfNow", LastTransitionTime: *after(time.Duration(minutes) * time.Minute)}
}

// A Transaction goes through phases, and when its locks were complete is known while it has them.
func TestThePhasesOfATransaction(t *testing.T) {
	txn := transaction("a", api.PhaseCommitting)
	assert.Equal(t, []Span{{What: "queued", From: at(0)}}, phasesOf(txn))
	txn.Status.StartTime = after(time.Minute)
	txn.Status.Conditions = []metav1.Condition{conditionSince(api.ConditionValidated, "True", 2), conditionSince(api.ConditionLocked, "False", 1)}
	assert.Equal(t, []Span{{"queued", at(0), at(1), false}, {"checked", at(1), at(2), false}, {"takes locks", at(2), "", false}}, phasesOf(txn))
	txn.Status.Conditions[1] = conditionSince(api.ConditionLocked, "True", 3)
	assert.Equal(t, []Span{{"queued", at(0), at(1), false}, {"checked", at(1), at(2), false}, {"took locks", at(2), at(3), false}, {"changes", at(3), "", false}}, phasesOf(txn))
	txn.Status.Conditions[1] = conditionSince(api.ConditionLocked, "False", 9)
	txn.Status.RollbackStartTime, txn.Status.CompletionTime = after(7*time.Minute), after(9*time.Minute)
	assert.Equal(t, []Span{
		{"queued", at(0), at(1), false}, {"checked", at(1), at(2), false}, {"locks and changes", at(2), at(7), false}, {"rollback", at(7), at(9), false},
	}, phasesOf(txn))
}

// Of a change that is not waited for the status has no time: what comes before it and after it tells one.
func TestTheTimesOfItems(t *testing.T) {
	txn := transaction("a", api.PhaseCommitting)
	txn.Status.StartTime = after(time.Minute)
	txn.Status.Conditions = []metav1.Condition{conditionSince(api.ConditionValidated, "True", 2), conditionSince(api.ConditionLocked, "True", 3)}
	txn.Status.Items = []api.Item{
		{Name: "first", State: api.ItemCommitted},
		{Name: "waited", State: api.ItemCommitted, WaitStartTime: after(4 * time.Minute), ReadyTime: after(6 * time.Minute)},
		{Name: "after", State: api.ItemCommitted},
		{Name: "last", State: api.ItemCommitted, WaitStartTime: after(8 * time.Minute)},
		{Name: "not yet", State: api.ItemPrepared},
	}
	made := func(from, to int) Span { return Span{"made", at(from), at(to), true} }
	assert.Equal(t, [][]Span{
		{made(3, 4)}, {made(3, 4), {"waited for", at(4), at(6), false}}, {made(6, 8)}, {made(6, 8), {"waited for", at(8), "", false}}, {},
	}, spansOf(txn))

	// In the order of a graph the others tell nothing.
	txn.Spec.Order = api.OrderGraph
	txn.Status.Items[2].DependsOn = []string{"first", "none"}
	assert.Equal(t, [][]Span{
		{{"made", at(3), "", true}}, {made(3, 4), {"waited for", at(4), at(6), false}}, {{"made", at(3), "", true}},
		{made(3, 8), {"waited for", at(8), "", false}}, {},
	}, spansOf(txn))

	// A rollback ends a wait, and may begin one.
	txn.Status.Phase, txn.Status.RollbackStartTime, txn.Status.CompletionTime = api.PhaseRolledBack, after(9*time.Minute), after(12*time.Minute)
	txn.Status.Items[3].State, txn.Status.Items[3].RollbackWait = api.ItemRolledBack, &api.RollbackWait{StartTime: after(10 * time.Minute), ReadyTime: after(11 * time.Minute)}
	assert.Equal(t, []Span{made(3, 8), {"waited for", at(8), at(9), false}, {"restored, waited for", at(10), at(11), false}}, spansOf(txn)[3])
	assert.Equal(t, []Span{made(3, 9)}, spansOf(txn)[0])
}

// A circle, which the API server does not refuse, ends.
func TestTheTimesOfItemsThatDependOnEachOther(t *testing.T) {
	txn := transaction("a", api.PhaseFailed)
	txn.Spec.Order = api.OrderGraph
	txn.Status.StartTime, txn.Status.CompletionTime = after(time.Minute), after(2*time.Minute)
	txn.Status.Items = []api.Item{
		{Name: "a", State: api.ItemCommitted, DependsOn: []string{"b"}, WaitStartTime: after(90 * time.Second)}, {Name: "b", State: api.ItemCommitted, DependsOn: []string{"a"}},
	}
	assert.Len(t, spansOf(txn), 2)
}

// A condition keeps the time at which it became what it is, and the reason of now.
func TestAConditionHasTheReasonOfNowAndNotOfThen(t *testing.T) {
	txn := transaction("a", api.PhaseCommitting)
	txn.Status.Conditions = []metav1.Condition{conditionSince(api.ConditionReady, "False", 1)}
	assert.Contains(t, timeline(txn), Moment{Time: at(1), What: "Ready became False"})
	assert.Equal(t, []Condition{{Type: "Ready", Status: "False", Since: at(1), Reason: "OfNow"}}, conditionsOf(txn))
}
