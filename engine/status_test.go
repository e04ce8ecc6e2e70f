package engine

import (
	"fmt"
	"regexp"
	"slices"
	"unicode"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
	"janus.io/janus/engine/plan"
)

// legalReason is what the API server accepts as the reason of a condition.
var legalReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// allConditions are on every Transaction from the first visit on.
var allConditions = []string{
	api.ConditionValidated, api.ConditionLocked, api.ConditionSucceeded, api.ConditionReady,
	api.ConditionReconciling, api.ConditionStalled, api.ConditionRolledBack,
}

// legalStatus checks the status that is about to follow another one.
func legalStatus(before, after *api.Transaction) error {
	was, is := &before.Status, &after.Status
	if is.Version != was.Version+1 {
		return fmt.Errorf("version %d follows %d", is.Version, was.Version)
	}
	if is.Phase != was.Phase && !plan.LegalPhase(was.Phase, is.Phase) {
		return fmt.Errorf("phase %s follows %q", is.Phase, was.Phase)
	}
	for i := range is.Items {
		item := &is.Items[i]
		if err := fixture.Consistent(item); err != nil {
			return err
		}
		replanned := is.Approval != nil && was.Approval != nil && is.Approval.Plans > was.Approval.Plans
		if i < len(was.Items) && !reachable(&was.Items[i], item) && (!replanned || was.Items[i].State != api.ItemSkipped) {
			return fmt.Errorf("item %s: %s follows %s", item.Name, item.State, was.Items[i].State)
		}
		if len(item.Reason) > 63 || len(item.Message) > 2048 {
			return fmt.Errorf("item %s: reason of %d bytes and message of %d do not fit the CRD", item.Name, len(item.Reason), len(item.Message))
		}
		if (item.Reason == "") != (item.Message == "") {
			return fmt.Errorf("item %s: reason %q and message %q go together", item.Name, item.Reason, item.Message)
		}
	}
	if (is.CompletionTime != nil) != is.Phase.Terminal() {
		return fmt.Errorf("phase %s with completion time %v", is.Phase, is.CompletionTime)
	}
	if is.StartTime == nil && (plan.Accepted(after) || meta.FindStatusCondition(is.Conditions, api.ConditionSuspended) == nil) {
		return fmt.Errorf("phase %s without a fixture.Start time", is.Phase)
	}
	return legalConditions(after)
}

// reachable allows what one checkpoint may do to an item: one move, or none, or
// for an item whose before-image is taken late two, saved and opened. An unsettled
// item is opened again. One whose intent is withdrawn may be skipped at once.
func reachable(was, is *api.Item) bool {
	from, to := was.State, is.State
	if is.Type == api.Delete && was.Type != api.Delete { // It deletes its target instead, and is prepared for that.
		return to == api.ItemPending && (from == api.ItemPending || from == api.ItemPrepared || from == api.ItemSkipped)
	}
	if was.Type == api.Await { // Nothing is sent for it, so it goes through its states at once.
		return from == to || from == api.ItemPending && to == api.ItemCommitted || from == api.ItemCommitted && to == api.ItemRolledBack || plan.LegalItem(from, to)
	}
	return from == api.ItemCommitting && to == api.ItemSkipped || from == to || plan.LegalItem(from, to) || to == api.ItemCommitting && (from == api.ItemPending || was.Unsettled)
}

func legalConditions(t *api.Transaction) error {
	for _, kind := range allConditions {
		if meta.FindStatusCondition(t.Status.Conditions, kind) == nil {
			return fmt.Errorf("phase %s: no condition %s", t.Status.Phase, kind)
		}
	}
	all := len(allConditions)
	if suspended := meta.FindStatusCondition(t.Status.Conditions, api.ConditionSuspended); suspended != nil {
		all++
		if (suspended.Status == metav1.ConditionTrue) != (t.Status.SuspendTime != nil) {
			return fmt.Errorf("condition Suspended is %s with suspendTime %v", suspended.Status, t.Status.SuspendTime)
		}
	}
	if meta.FindStatusCondition(t.Status.Conditions, api.ConditionApproved) != nil {
		all++
	}
	if n := len(t.Status.Conditions); n != all {
		return fmt.Errorf("%d conditions", n)
	}
	for _, c := range t.Status.Conditions {
		switch {
		case !legalReason.MatchString(c.Reason) || len(c.Reason) > 63:
			return fmt.Errorf("condition %s: illegal reason %q", c.Type, c.Reason)
		case c.ObservedGeneration != t.Generation && slices.Contains([]string{api.ConditionReady, api.ConditionReconciling, api.ConditionStalled}, c.Type):
			return fmt.Errorf("condition %s: observed generation %d of %d", c.Type, c.ObservedGeneration, t.Generation)
		case c.ObservedGeneration == 0:
			return fmt.Errorf("condition %s: no observed generation", c.Type)
		case c.LastTransitionTime.IsZero():
			return fmt.Errorf("condition %s: no transition time", c.Type)
		case c.Message == "" || len(c.Message) > 2048:
			return fmt.Errorf("condition %s: message of %d bytes", c.Type, len(c.Message))
		}
		for _, r := range c.Message {
			if !unicode.IsPrint(r) && r != ' ' {
				return fmt.Errorf("condition %s: unprintable %q in the message", c.Type, r)
			}
		}
	}
	return polarity(t)
}

// polarity is what tools that wait rely on.
func polarity(t *api.Transaction) error {
	is := func(kind string) metav1.ConditionStatus {
		return meta.FindStatusCondition(t.Status.Conditions, kind).Status
	}
	got := [...]metav1.ConditionStatus{is(api.ConditionReady), is(api.ConditionReconciling), is(api.ConditionStalled), is(api.ConditionSucceeded)}
	var want [4]metav1.ConditionStatus
	switch t.Status.Phase {
	case api.PhaseCommitted, api.PhasePlanned:
		want = [...]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionFalse, metav1.ConditionTrue}
	case api.PhaseRolledBack, api.PhaseFailed:
		want = [...]metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionFalse}
	case api.PhaseRollingBack:
		want = [...]metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionFalse}
	default:
		want = [...]metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
		if plan.GoesOn(t) && slices.ContainsFunc(t.Status.Items, func(i api.Item) bool { return i.Failed || i.State == api.ItemSkipped && !plan.NotWanted(&i) }) {
			want[3] = metav1.ConditionFalse // What has failed does not stop the others.
		}
	}
	if got != want {
		return fmt.Errorf("phase %s: Ready, Reconciling, Stalled, Succeeded are %v and should be %v", t.Status.Phase, got, want)
	}
	return nil
}
