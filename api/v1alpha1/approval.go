package v1alpha1

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An approval is two annotations that are written together: which plan is approved, and by
// whom. The policy transaction-approvals.backup.janus.io lets only those write them who have
// the verb approve on transactions.approve.janus.io, for the plan that stands, and in
// their own name.
const (
	// ApprovedPlanAnnotation has the digest of the plan that is approved.
	ApprovedPlanAnnotation = "backup.janus.io/approved-plan"
	// ApprovedByAnnotation has the name of the user who approves it.
	ApprovedByAnnotation = "backup.janus.io/approved-by"
)

// ApprovalPolicy is the name of that policy.
const ApprovalPolicy = "transaction-approvals.backup.janus.io"

// Approval says whether someone has to approve the plan.
type Approval struct {
	// required has the Transaction make a plan and stand until someone approves it, before
	// it takes its first lock. status.approval has the digest of the plan. Who approves it
	// needs the verb approve on transactions.approve.janus.io. Once the targets are
	// locked they are looked at again: if a change would do something else than in the plan,
	// the locks are released and the new plan stands for another approval.
	Required bool `json:"required"`

	// timeout is how long a plan may stand, as a duration such as 8h. A Transaction whose
	// plan is not approved by then is Failed, and has changed nothing. This time does not
	// count towards spec.timeout. At least 1s, at most 8760h.
	//
	// +optional
	// +kubebuilder:default="168h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('8760h')",message="must be a duration from 1s to 8760h, such as 90s, 5m or 1h30m"
	Timeout *Duration `json:"timeout,omitempty"`
}

// ApprovalStatus is the plan that stands for approval, or was approved.
type ApprovalStatus struct {
	// plans counts the plans that have stood, this one included.
	//
	// +optional
	Plans int64 `json:"plans,omitempty"`

	// digest is the SHA-256 of the plan: of the Transaction, its spec, the ServiceAccount, and
	// what each change would do to which object. Empty while another plan is made.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest,omitempty"`

	// requestTime is since when the plan stands, the time in which the Transaction was
	// suspended left out.
	//
	// +optional
	RequestTime *metav1.Time `json:"requestTime,omitempty"`

	// approvedBy is the user who approved it, as the API server authenticated them.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ApprovedBy string `json:"approvedBy,omitempty"`

	// approvalTime is when janusd accepted the approval.
	//
	// +optional
	ApprovalTime *metav1.Time `json:"approvalTime,omitempty"`

	// waitedSeconds is how long plans have stood until they were approved. The timeout of
	// the Transaction is that much later.
	//
	// +optional
	WaitedSeconds int64 `json:"waitedSeconds,omitempty"`

	// changed names items that would do something else than in the plan that was approved
	// before this one, the first of them.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	Changed []string `json:"changed,omitempty"`
}

// NeedsApproval reports whether the changes are made only once their plan is approved.
func (t *Transaction) NeedsApproval() bool {
	return t.Spec.Approval != nil && t.Spec.Approval.Required && !t.Spec.DryRun
}

// DescribeApproval says which plan waits for approval, or who has approved it; empty if none has to.
// The name of the user may hold anything.
func (t *Transaction) DescribeApproval() string {
	a := t.Status.Approval
	if a == nil || !t.NeedsApproval() {
		return ""
	}
	name := fmt.Sprintf("plan %d %s", a.Plans, a.Digest)
	switch {
	case a.ApprovalTime != nil:
		return fmt.Sprintf("%s, by %s at %s", name, a.ApprovedBy, a.ApprovalTime.UTC().Format(time.RFC3339))
	case a.Digest == "":
		return "another plan is made"
	case t.Status.Phase.Terminal():
		return name + " was not approved"
	default:
		return name + " waits since " + a.RequestTime.UTC().Format(time.RFC3339)
	}
}
