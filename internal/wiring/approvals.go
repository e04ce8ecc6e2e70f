package wiring

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Approvals asks the API server itself whether it guards approvals.
type Approvals struct{ journal *Journal }

// nobody is in whose name an approval is tried: no user has a name with a space.
const nobody = "nobody (janusd asks whether approvals are guarded)"

// Guarded tries, without effect, to approve the plan in the name of another user. The policy
// refuses that to everybody, whatever they may do. So this tells whether it is in force for this
// very Transaction, which to read the policy and its bindings would not.
func (a *Approvals) Guarded(ctx context.Context, t *api.Transaction) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": t.UID, "annotations": map[string]string{api.ApprovedPlanAnnotation: "none", api.ApprovedByAnnotation: nobody},
	}})
	if err != nil {
		return fmt.Errorf("encode an approval of %s: %w", describe(t), err)
	}
	_, err = a.journal.client.Namespace(t.Namespace).Patch(ctx, t.Name, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: Manager, DryRun: []string{metav1.DryRunAll}})
	const op = "approve the plan of"
	switch {
	case err == nil:
		return errclass.New(errclass.Terminal, errclass.ApprovalUnguarded, op, describe(t),
			"anyone who may write it could do so in another's name: the policy %s is not in force", api.ApprovalPolicy).
			WithHint("install what is in deploy/policies, or policies.enabled of the chart, and create the Transaction again")
	case errclass.PolicyOf(err) == api.ApprovalPolicy:
		return nil
	default:
		// No answer is no proof, and janusd may write the Transaction: it could so far.
		return &errclass.Error{Op: "ask who may " + op, Target: describe(t), Class: errclass.Retryable, Reason: errclass.ReasonOf(err), RetryAfter: errclass.RetryAfter(err), Err: err}
	}
}
