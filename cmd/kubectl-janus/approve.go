package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	authnv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

func newApprove(s *session) *cobra.Command {
	var digest string
	var wait waits
	cmd := &cobra.Command{
		Use: "approve NAME [--plan DIGEST]", Short: "Show the plan of a Transaction that waits for approval, or approve it",
		Args: cobra.ExactArgs(1), ValidArgsFunction: s.names,
		Long: `Show the plan of a Transaction that waits for approval. With --plan, which takes the digest that is shown, approve it in
your own name. That takes the verb approve on transactions.approve.janus.io. If a change would do something else
by the time it is made, another plan waits for approval.`,
		Example: `  kubectl janus approve release
  kubectl janus approve release --plan 5f2d8e0c… --wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := s.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if why := notStanding(t); why != "" {
				return fmt.Errorf("transaction %s/%s %s", t.Namespace, t.Name, why)
			}
			if digest == "" && !wait.out.text() {
				return s.printWhole(wait.out.printer(), t)
			}
			if digest == "" {
				s.showPlan(cmd.Context(), t)
				return nil
			}
			if t, err = s.approve(cmd, t, digest); err != nil {
				return err
			}
			wait.announce(s, "transaction.backup.janus.io/%s approved", t.Name)
			return wait.end(cmd.Context(), s, t)
		},
	}
	cmd.Flags().StringVar(&digest, "plan", "", "the digest of the plan that is approved")
	wait.addAll(cmd)
	return cmd
}

// notStanding says why a Transaction has no plan to approve; empty if it has.
func notStanding(t *api.Transaction) string {
	switch {
	case plan.Standing(t):
		return ""
	case t.Status.Phase.Terminal():
		return "has ended already: it is " + string(t.Status.Phase)
	case !plan.NeedsApproval(t):
		return "needs no approval"
	case plan.Approved(t):
		return fmt.Sprintf("is approved already: by %s", t.Status.Approval.ApprovedBy)
	default:
		return "has no plan to approve yet: " + sentence(t)
	}
}

// showPlan prints the plan that stands, and how to approve it.
func (s *session) showPlan(ctx context.Context, t *api.Transaction) {
	a := t.Status.Approval
	s.print("Plan %d of Transaction %s/%s, which acts as ServiceAccount %s:\n", a.Plans, t.Namespace, t.Name, t.Spec.ServiceAccountName)
	s.printPlanOf(ctx, s.Out, draft{}, t, true)
	s.print("\nTo approve it until %s:\n  kubectl janus approve %s -n %s --plan %s",
		plan.ApprovalDeadline(t).UTC().Format("2006-01-02 15:04:05 MST"), t.Name, t.Namespace, a.Digest)
}

// approve writes that the user approves a plan.
func (s *session) approve(cmd *cobra.Command, t *api.Transaction, digest string) (*api.Transaction, error) {
	if digest != t.Status.Approval.Digest {
		return nil, fmt.Errorf("plan %s of transaction %s/%s does not wait for approval: plan %s does; look at it with kubectl janus approve %s -n %s",
			digest, t.Namespace, t.Name, t.Status.Approval.Digest, t.Name, t.Namespace)
	}
	me, err := s.whoAmI(cmd.Context())
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": t.UID, "annotations": map[string]string{api.ApprovedPlanAnnotation: digest, api.ApprovedByAnnotation: me},
	}})
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	return s.patch(cmd, t, body)
}

// whoAmI is the name that the API server has for the user.
func (s *session) whoAmI(ctx context.Context) (string, error) {
	client, err := s.kube()
	if err != nil {
		return "", err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authnv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("ask the API server who you are: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}
