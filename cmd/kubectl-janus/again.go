package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
)

func newRetry(s *session) *cobra.Command {
	var name string
	var y sensitivity
	var wait waits
	cmd := &cobra.Command{
		Use: "retry NAME", Short: "Run the changes of a Transaction that did not commit once more", Args: cobra.ExactArgs(1), ValidArgsFunction: s.names,
		Long: `Run the changes of a Transaction that did not commit once more. A Transaction runs once, so this creates another one with
the same spec, but for suspend and cancel. It is refused while something is left that could not be rolled back. A change
that is still in effect, as after onFailure Continue or cancel Stop, is not made again: the new Transaction has an Await
in its place, with the same name.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := s.read(cmd.Context(), args[0])
			switch {
			case err != nil:
				return err
			case !t.Status.Phase.Terminal():
				return fmt.Errorf("transaction %s/%s has not ended: %s", t.Namespace, t.Name, sentence(t))
			case t.Status.Phase == api.PhaseCommitted:
				return fmt.Errorf("transaction %s/%s is Committed: its changes are in effect", t.Namespace, t.Name)
			case unresolved(t):
				return fmt.Errorf("transaction %s/%s has left changes that could not be rolled back: see kubectl janus recover %s -n %s", t.Namespace, t.Name, t.Name, t.Namespace)
			}
			leaveOut(t)
			u, err := s.copyOf(cmd.Context(), &y, t, name, short(t.Name)+"-retry-")
			if err != nil {
				return err
			}
			if name != "" {
				u.SetGenerateName("")
			}
			return wait.carryOut(cmd.Context(), s, u)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the name of the new Transaction; the default is made up from the old one")
	y.addTo(cmd)
	wait.addAll(cmd)
	return cmd
}

// leaveOut has an Await in place of each change that is in effect: other changes may refer to it by
// its name. The Await waits only if the change did.
func leaveOut(t *api.Transaction) {
	// An undo has items and no changes.
	for i := range min(len(t.Status.Items), len(t.Spec.Changes)) {
		change := &t.Spec.Changes[i]
		if t.Status.Items[i].State != api.ItemCommitted || change.Type == api.Await {
			continue
		}
		ready := change.ReadyWhen
		if ready == nil {
			ready = &api.ReadyWhen{Expression: "true"}
		}
		*change = api.Change{Name: change.Name, Type: api.Await, Target: change.Target, DependsOn: change.DependsOn, ReadyWhen: ready}
	}
}

// short is a name of which another is made up.
func short(name string) string { return name[:min(len(name), 200)] }

// copyOf is a Transaction with the same spec, that is to run on its own.
func (s *session) copyOf(ctx context.Context, y *sensitivity, t *api.Transaction, name, generate string) (draft, error) {
	hidden, err := s.taken(ctx, t)
	if err != nil {
		return draft{}, err
	}
	secret, err := y.hider(ctx, s, t.Spec.Changes)
	if err != nil {
		return draft{}, err
	}
	hidden = append(hidden, secret.in(t.Spec.Changes)...)
	again := &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: name, GenerateName: generate}}
	t.Spec.DeepCopyInto(&again.Spec)
	again.Spec.Suspend, again.Spec.Cancel = false, ""
	u, err := untyped(again)
	return draft{Unstructured: u, hidden: hidden, secret: secret}, err
}
