package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// undoWishes are the flags of undo.
type undoWishes struct {
	name, account        string
	revision, toRevision int64
	acceptLoss, yes      bool
	showOnly             bool
	policy               string
	wait                 waits
	back                 goingBack
}

func newUndo(s *session) *cobra.Command {
	var w undoWishes
	cmd := &cobra.Command{
		Aliases: []string{"rollback"},
		Use:     "undo {NAME | --revision N | --to-revision N} [--service-account NAME]",
		Short:   "Undo a committed Transaction, or all since a revision, by another Transaction",
		Long: `Undo a committed Transaction by another one that is all or nothing too. That works for as long as the namespace
remembers it (kubectl janus history) and nobody has changed what it had set. Of one that has failed with onFailure
Continue, what is in effect is undone.

With --to-revision, all that have committed since are undone, as one Transaction: each object gets the state that it had
after that revision. With number 0, everything that the namespace remembers is undone.

On a terminal, and always with --to-revision, the plan is shown first, and you are asked whether to go on; --yes leaves
out both. --dry-run shows the plan alone.`,
		Example: `  kubectl janus undo release-2
  kubectl janus undo release-2 --dry-run
  kubectl janus undo --revision 7 --service-account deployer
  kubectl janus undo --to-revision 4 --service-account deployer --wait`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: s.names,
		RunE: func(cmd *cobra.Command, args []string) error {
			since := cmd.Flags().Changed("to-revision")
			d, err := w.draft(cmd.Context(), s, args, since)
			s.warn(w.back.warnings())
			switch {
			case err != nil && w.showOnly:
				return trouble(err)
			case err != nil:
				return err
			case w.showOnly:
				return trouble(s.planOfDraft(cmd.Context(), d, cmp.Or(time.Duration(w.wait.limit), planTimeout), w.wait.out))
			}
			if (since || s.interactive()) && !w.yes {
				nothing, err := s.wanted(cmd.Context(), d, asking{
					out: planOut(s, &w.wait), limit: time.Duration(w.wait.limit), question: "Undo all of this?", otherwise: "nothing is undone",
				})
				if nothing {
					w.wait.announce(s, "nothing to undo: all objects are as they would be")
				}
				if nothing || err != nil {
					return err
				}
			}
			return w.wait.carryOut(cmd.Context(), s, d)
		},
	}
	cmd.Flags().StringVar(&w.name, "name", "", "the name of the new Transaction; the default is made up")
	cmd.Flags().StringVarP(&w.account, accountFlag, "s", "", "the ServiceAccount that the undo uses; by default that of the Transaction, else $JANUS_SERVICE_ACCOUNT, or what the annotation "+accountAnnotation+" of the namespace names")
	cmd.Flags().Int64Var(&w.revision, "revision", 0, "undo the revision with this number")
	cmd.Flags().Int64Var(&w.toRevision, "to-revision", 0, "undo all that have committed since the revision with this number")
	cmd.Flags().BoolVar(&w.acceptLoss, "accept-loss", false, "also undo changes that cannot be undone completely")
	cmd.Flags().BoolVar(&w.showOnly, "dry-run", false, "show the plan, and undo nothing; the exit codes are those of plan")
	cmd.Flags().BoolVarP(&w.yes, "yes", "y", false, "show no plan, and do not ask")
	choose(cmd, &w.policy, "conflict-policy", "spec.conflictPolicy: Fail, or Force to undo over what others have written since", api.ConflictFail, api.ConflictForce)
	w.wait.addAll(cmd)
	return cmd
}

// draft is that of the Transaction that undoes what is named.
func (w *undoWishes) draft(ctx context.Context, s *session, args []string, since bool) (draft, error) {
	t, err := w.transaction(ctx, s, args, since)
	if err != nil {
		return draft{}, err
	}
	u, err := untyped(t)
	return draft{Unstructured: u}, err
}

// transaction makes the Transaction that undoes what is named.
func (w *undoWishes) transaction(ctx context.Context, s *session, args []string, since bool) (*api.Transaction, error) {
	namespace, err := s.namespace()
	if err != nil {
		return nil, err
	}
	undo := &api.UndoOf{AcceptLoss: w.acceptLoss}
	account, generate, named := w.account, fmt.Sprintf("undo-%d-", w.revision), len(args)
	for _, given := range []bool{w.revision != 0, since} {
		if given {
			named++
		}
	}
	switch {
	case named != 1:
		return nil, errors.New("no Transaction to undo is given, or several are: give one name, or --revision or --to-revision with a number of kubectl janus history")
	case since:
		undo.ToRevision, generate = &w.toRevision, fmt.Sprintf("undo-to-%d-", w.toRevision)
		w.back.addSince(ctx, s, namespace, w.toRevision)
	case w.revision != 0:
		r, err := s.revisionOf(ctx, namespace, w.revision)
		if err != nil {
			return nil, err
		}
		w.back.addRevision(r)
		undo.Revision = &w.revision
	default:
		t, err := s.read(ctx, args[0])
		if err != nil {
			return nil, err
		}
		if !plan.EndedInEffect(&t.Status) {
			return nil, fmt.Errorf("transaction %s/%s is %s: only what has ended with changes in effect can be undone", t.Namespace, t.Name, phaseOf(t))
		}
		for _, c := range t.Spec.Changes {
			w.back.add(c.Type, c.Target)
		}
		undo.Name, generate = t.Name, short(t.Name)+"-undo-"
		if account == "" {
			account = t.Spec.ServiceAccountName
		}
	}
	if account, err = s.account(ctx, namespace, account); err != nil {
		return nil, err
	}
	t := &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.name}}
	if w.name == "" {
		t.GenerateName = generate
	}
	t.Spec.ServiceAccountName, t.Spec.UndoOf, t.Spec.ConflictPolicy = account, undo, api.ConflictPolicy(w.policy)
	return t, nil
}

// planOut is where a plan is shown that is no result.
func planOut(s *session, w *waits) io.Writer {
	if w.out.text() {
		return s.Out
	}
	return s.ErrOut
}
