package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// DefaultApprovalTimeout is how long a plan may stand, as in the CRD.
const DefaultApprovalTimeout = 168 * time.Hour

// AwaitingApproval is the reason of the wait of a Transaction whose plan stands.
const AwaitingApproval = "AwaitingApproval"

// ReasonApproved is that of the condition Approved, and of the event about it.
const ReasonApproved = "Approved"

// ReasonPlanChanged is that of a Transaction whose changes would do something else than in
// the plan that was approved.
const ReasonPlanChanged = "PlanChanged"

// reasonNotApproved is that of a Transaction that has ended before.
const reasonNotApproved = "NotApproved"

// maxChangedPlans is how many items are named that would do something else.
const maxChangedPlans = 16

// NeedsApproval reports whether the changes are made only once their plan is approved.
func NeedsApproval(t *api.Transaction) bool { return t.NeedsApproval() }

// ShowsPlan reports whether the status says what each change would do.
func ShowsPlan(t *api.Transaction) bool { return t.Spec.DryRun || NeedsApproval(t) }

// Approved reports whether the plan that the status has is approved.
func Approved(t *api.Transaction) bool {
	a := t.Status.Approval
	return a != nil && a.Digest != "" && a.ApprovalTime != nil
}

// Standing reports whether a plan waits for approval.
func Standing(t *api.Transaction) bool {
	a := t.Status.Approval
	return NeedsApproval(t) && a != nil && a.Digest != "" && a.ApprovalTime == nil && OrPending(t.Status.Phase) == api.PhasePending
}

// PlannedBefore reports whether another plan stood before and was begun with: locks and before-images may
// have been taken for it.
func PlannedBefore(t *api.Transaction) bool {
	a := t.Status.Approval
	return a != nil && (a.Plans > 1 || a.Digest == "")
}

// ApprovedBy is who the annotations say approves the plan that stands; empty for nobody.
// Whether they may is not known from that.
func ApprovedBy(t *api.Transaction) string {
	if !Standing(t) || t.Annotations[api.ApprovedPlanAnnotation] != t.Status.Approval.Digest {
		return ""
	}
	return t.Annotations[api.ApprovedByAnnotation]
}

// ApprovalDeadline is when the plan that stands has stood for too long.
func ApprovalDeadline(t *api.Transaction) time.Time {
	limit := DefaultApprovalTimeout
	if t.Spec.Approval != nil {
		limit = Duration(t.Spec.Approval.Timeout, DefaultApprovalTimeout)
	}
	if t.Status.Approval == nil || t.Status.Approval.RequestTime == nil {
		return time.Time{}
	}
	return t.Status.Approval.RequestTime.Add(time.Second + limit) // It is kept by the second.
}

// decideStanding says what a Transaction does whose plan stands.
func decideStanding(t *api.Transaction, now time.Time) Action {
	switch end := ApprovalDeadline(t); {
	case ApprovedBy(t) != "":
		return Action{Verb: Approve}
	case now.Before(end):
		return Action{Verb: Await, At: end}
	}
	return stopWith(t, Cause{Reason: errclass.ApprovalTimeout, Message: fmt.Sprintf(
		"nobody has approved plan %s within spec.approval.timeout (%s)", t.Status.Approval.Digest, Duration(t.Spec.Approval.Timeout, DefaultApprovalTimeout))})
}

// Stand records, with the items that the pre-flight has found, that their plan waits for
// approval.
func Stand(t *api.Transaction, status *api.TransactionStatus, account types.UID, now metav1.Time) {
	last := status.Approval
	if last == nil {
		last = &api.ApprovalStatus{}
	}
	status.ServiceAccountUID = account
	status.Approval = &api.ApprovalStatus{
		Plans: last.Plans + 1, RequestTime: &now, WaitedSeconds: last.WaitedSeconds, Changed: last.Changed,
	}
	status.Approval.Digest = planDigest(t, status)
}

// planDigest is the digest of the plan in a status. It has the number of the plan, so that the
// approval of one is not that of a later one that is alike; and the uid, so that nobody knows
// it before there is the Transaction.
func planDigest(t *api.Transaction, status *api.TransactionStatus) string {
	type step struct {
		Name, Resource, Content, Digest string
		Target                          api.Target
		Type                            api.ChangeType
		State                           api.ItemState
		Effect                          api.PlanEffect
	}
	whole := struct {
		Transaction, Account types.UID
		Number               int64
		Spec                 string
		Undoing              *api.Undoing
		Steps                []step
	}{t.UID, status.ServiceAccountUID, status.Approval.Plans, SpecDigest(&t.Spec), status.Undoing, nil}
	for i := range status.Items {
		item := &status.Items[i]
		one := step{
			Name: item.Name, Resource: item.Resource, Content: item.ContentDigest,
			Target: item.Target, Type: item.Type, State: item.State,
		}
		if item.Plan != nil {
			one.Effect, one.Digest = item.Plan.Effect, item.Plan.Digest
		}
		whole.Steps = append(whole.Steps, one)
	}
	text, _ := json.Marshal(whole) // It has strings and numbers, which can be encoded.
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Accept records that the plan is approved, by whom and when.
func Accept(t *api.Transaction, status *api.TransactionStatus, now metav1.Time) {
	a := status.Approval
	a.ApprovedBy, a.ApprovalTime = ApprovedBy(t), &now
	a.WaitedSeconds += int64(max(0, now.Sub(a.RequestTime.Time)) / time.Second)
}

// PlansChanged names those of some items, looked at under their locks, that would do something
// else than in the plan: its digest is another, or it can be tried no more. Of an item that
// could not be tried before, the plan says nothing.
func PlansChanged(items []api.Item, which []int, digests []string) []string {
	var out []string
	for n, i := range which {
		plan := items[i].Plan
		switch {
		case plan == nil:
			out = append(out, items[i].Name)
		case plan.Effect != api.EffectDeferred && plan.Digest != digests[n]:
			out = append(out, items[i].Name)
		}
	}
	return out
}

// Outdate records that an approval does not count any more, because items would do something
// else than in the plan.
func Outdate(status *api.TransactionStatus, changed []string) {
	a := status.Approval
	a.Digest, a.RequestTime, a.ApprovedBy, a.ApprovalTime = "", nil, "", nil
	a.Changed = slices.Clone(changed[:min(len(changed), maxChangedPlans)])
}

// Outdated reports whether a Transaction has to give back what it has taken on an approval
// that does not count any more.
func Outdated(t *api.Transaction) bool {
	return t.Status.Phase == api.PhasePreparing && NeedsApproval(t) && !Approved(t)
}

// approvalConditions tell whether the plan is approved; none if that is not asked for, or
// there is none yet.
func approvalConditions(t *api.Transaction) []condition {
	a := t.Status.Approval
	if !NeedsApproval(t) || a == nil {
		return nil
	}
	changed := ""
	if len(a.Changed) > 0 {
		changed = "would do something else than in the plan that was approved before: items " + strings.Join(a.Changed, ", ")
		if len(a.Changed) == maxChangedPlans {
			changed += " and perhaps more"
		}
	}
	switch {
	case t.Status.Phase.Terminal() && a.ApprovalTime == nil:
		return []condition{{api.ConditionApproved, no, reasonNotApproved, "it ended before its plan was approved"}}
	case a.ApprovalTime != nil:
		return []condition{{api.ConditionApproved, yes, ReasonApproved, errclass.Printable(fmt.Sprintf("%s approved plan %s", a.ApprovedBy, a.Digest))}}
	case a.Digest == "":
		return []condition{{api.ConditionApproved, no, ReasonPlanChanged, errclass.Printable("another plan is made; " + changed)}}
	}
	message := fmt.Sprintf("plan %s waits for approval: kubectl janus approve %s -n %s", a.Digest, t.Name, t.Namespace)
	if changed != "" {
		message += "; " + changed
	}
	message = errclass.Printable(message)
	out := []condition{{api.ConditionApproved, no, AwaitingApproval, message}}
	if Standing(t) {
		out = append(out, condition{api.ConditionReady, no, AwaitingApproval, message}, condition{api.ConditionReconciling, yes, AwaitingApproval, message})
	}
	return out
}
