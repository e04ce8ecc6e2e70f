package faults

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// guard puts the policy about approvals in force where the workload needs one.
func (r *run) guard() error {
	if !r.Approves {
		return nil
	}
	if err := r.GuardApprovals(r.ctx, r.at.namespace); err != nil {
		return err
	}
	return harness.Poll(r.ctx, func(ctx context.Context) (bool, error) { return r.ApprovalsGuarded(ctx, r.at.namespace), nil })
}

// approve approves each plan as soon as it stands, until the run is over.
func (r *run) approve(ctx context.Context) {
	client := r.Dynamic.Resource(api.Resource).Namespace(r.at.namespace)
	user := harness.Approver(r.at.namespace)
	for {
		live, err := client.Get(ctx, transaction, metav1.GetOptions{})
		if err == nil {
			digest, _, _ := unstructured.NestedString(live.Object, "status", "approval", "digest")
			if digest != "" && live.GetAnnotations()[api.ApprovedPlanAnnotation] != digest {
				// It is refused if another plan stands by now, which is looked at next.
				_ = r.ApproveAs(ctx, user, types.NamespacedName{Namespace: r.at.namespace, Name: transaction}, digest, user)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}
