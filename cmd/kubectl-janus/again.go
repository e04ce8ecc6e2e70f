package main

import (
	"context"
	"errors"
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
the same spec, but for suspend and cancel. It is refused while something is left that could not be rolled back. What
onFailure Continue has left in effect is not made again: the new Transaction has an Await in its place, with the same
name.`,
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
				return fmt.Errorf("transaction %s/%s has left changes that could not be rolled back: see kubectl janus recover %s", t.Namespace, t.Name, t.Name)
			}
			leaveOut(t)
			u, err := s.copyOf(cmd.Context(), &y, t, name, short(t.Name)+"-retry-")
			if err != nil {
				return err
			}
			if name != "" {
				u.SetGenerateName("")
			}
			made, err := s.create(cmd.Context(), u)
			if err != nil {
				return err
			}
			s.print("transaction.backup.janus.io/%s created", made.Name)
			return wait.end(cmd.Context(), s, made)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the name of the new Transaction; the default is made up from the old one")
	y.addTo(cmd)
	wait.addTo(cmd)
	return cmd
}

func newUndo(s *session) *cobra.Command {
	var name, account string
	var revision int64
	var acceptLoss bool
	var wait waits
	cmd := &cobra.Command{
		Use: "undo {NAME | --revision N --service-account NAME}", Short: "Undo a committed Transaction by another one",
		Long: `Undo a committed Transaction by another one that is all or nothing too. That works for as long as the namespace
remembers it (kubectl janus history) and nobody has changed what it had set.`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: s.names,
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := s.namespace()
			if err != nil {
				return err
			}
			undo := &api.UndoOf{AcceptLoss: acceptLoss}
			generate := fmt.Sprintf("undo-%d-", revision)
			switch {
			case (len(args) == 1) == (revision != 0):
				return errors.New("what is to be undone? give the name of a Transaction, or --revision with a number of kubectl janus history")
			case revision != 0:
				undo.Revision = &revision
			default:
				t, err := s.read(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if t.Status.Phase != api.PhaseCommitted {
					return fmt.Errorf("transaction %s/%s is %s: only what has committed can be undone", t.Namespace, t.Name, phaseOf(t))
				}
				undo.Name, generate = t.Name, short(t.Name)+"-undo-"
				if account == "" {
					account = t.Spec.ServiceAccountName
				}
			}
			if account == "" {
				return errors.New("no ServiceAccount is named: set --service-account to the one that the undo uses")
			}
			t := &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			if name == "" {
				t.GenerateName = generate
			}
			t.Spec.ServiceAccountName, t.Spec.UndoOf = account, undo
			u, err := untyped(t)
			if err != nil {
				return err
			}
			made, err := s.create(cmd.Context(), draft{Unstructured: u})
			if err != nil {
				return err
			}
			s.print("transaction.backup.janus.io/%s created", made.Name)
			return wait.end(cmd.Context(), s, made)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the name of the new Transaction; the default is made up")
	cmd.Flags().StringVar(&account, "service-account", "", "the ServiceAccount that the undo uses; by default that of the Transaction")
	cmd.Flags().Int64Var(&revision, "revision", 0, "undo the revision with this number")
	cmd.Flags().BoolVar(&acceptLoss, "accept-loss", false, "also undo changes that cannot be undone completely")
	wait.addTo(cmd)
	return cmd
}

// leaveOut has an Await in place of each change that is in effect: other changes may refer to it by
// its name. The Await waits only if the change did.
func leaveOut(t *api.Transaction) {
	for i := range t.Status.Items {
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
	return draft{u, hidden, secret}, err
}
