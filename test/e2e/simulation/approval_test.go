package simulation

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/apisim"
)

// approver is who everybody is in the model who impersonates nobody.
const approver = "kubernetes-admin"

// approved are small workloads that need approval.
func approved(one func(string, []thing, ...api.Change) scenario) []scenario {
	alpha, beta, delta := pool[0], pool[1], pool[3]
	news := map[string]string{"a": "new", "c": "new"}
	refused := thing{configMap, "refused"}.change(api.Create, old)
	out := []scenario{
		one("approved", []thing{alpha, delta}, alpha.change(api.Patch, news), delta.change(api.Patch, news)),
		one("approved-delete", []thing{alpha, beta}, alpha.change(api.Delete, nil), beta.change(api.Update, news)),
		one("approved-back", []thing{alpha}, alpha.change(api.Patch, news), refused),
	}
	for i := range out {
		out[i].transactions[0].Approval = &api.Approval{Required: true}
	}
	return out
}

// guardApproval is the policy about approvals, as far as janusd and the approver meet it. The
// real one is tried on the real API server.
func guardApproval(a apisim.Admission) error {
	if a.Resource != api.Resource.Resource || a.Subresource != "" || a.Object == nil {
		return nil
	}
	is, was := a.Object.GetAnnotations(), map[string]string{}
	standing := ""
	if a.Old != nil {
		was = a.Old.GetAnnotations()
		standing, _, _ = unstructured.NestedString(a.Old.Object, "status", "approval", "digest")
	}
	plan, by := is[api.ApprovedPlanAnnotation], is[api.ApprovedByAnnotation]
	if plan == "" || plan == was[api.ApprovedPlanAnnotation] && by == was[api.ApprovedByAnnotation] || by == a.User && plan == standing {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: fmt.Sprintf("transactions.backup.janus.io %q is forbidden: ValidatingAdmissionPolicy '%s' with binding '%s' denied request: no", a.Name, api.ApprovalPolicy, api.ApprovalPolicy),
	}}
}

// approve approves a plan that stands, some time after it does: which may be when others have
// written its targets.
func (a *actors) approve() error {
	for _, name := range a.world.names() {
		t := a.world.transaction(name.Name)
		if t == nil {
			continue
		}
		digest, _, _ := unstructured.NestedString(t.Object, "status", "approval", "digest")
		if digest == "" || t.GetAnnotations()[api.ApprovedPlanAnnotation] == digest || t.GetDeletionTimestamp() != nil || a.world.random.IntN(4) > 0 {
			continue
		}
		body := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:%q}}}`, api.ApprovedPlanAnnotation, digest, api.ApprovedByAnnotation, approver)
		if _, err := a.of(t).Patch(context.Background(), name.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "approver"}); err != nil {
			return fmt.Errorf("approve Transaction %s: %w", name.Name, err)
		}
		a.world.note("someone approves %s", name.Name)
	}
	return nil
}
