package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

func newDelete(s *session) *cobra.Command {
	var yes bool
	var w waits
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a Transaction, and say what happens to its changes", Args: cobra.ExactArgs(1), ValidArgsFunction: s.names,
		Long: `Delete a Transaction, with its before-images and its revision. What it has changed stays, unless it still runs and its
spec.onDelete is Rollback: then its changes are rolled back before it is gone. What happens to the changes is said first,
and on a terminal you are asked whether to go on; --yes leaves that out. kubectl delete does the same, and only warns.

To end a Transaction and roll its changes back, cancel it instead. To undo one that has committed, use undo.`,
		Example: `  kubectl janus delete deploy-v2
  kubectl janus delete @latest --yes --wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := s.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			s.say("%s", fate(t))
			if s.interactive() && !yes {
				if err := s.agreed(cmd.Context(), fmt.Sprintf("Delete Transaction %s/%s?", t.Namespace, t.Name), "it is not deleted"); err != nil {
					return err
				}
			}
			return s.remove(cmd.Context(), t, &w)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&w.wait, "wait", false, "wait until it is gone")
	cmd.Flags().Var(&w.limit, "timeout", "how long to wait; without it as long as it takes")
	w.out.addTo(cmd)
	return cmd
}

// remove deletes a Transaction, if it is still the same.
func (s *session) remove(ctx context.Context, t *api.Transaction, w *waits) error {
	client, err := s.forewarned(t.Namespace)
	if err != nil {
		return err
	}
	err = client.Delete(ctx, t.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &t.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return explain(fmt.Sprintf("delete Transaction %s/%s", t.Namespace, t.Name), err)
	}
	if !w.wait {
		return s.deleted(t, w)
	}
	if err := s.untilGone(ctx, client, t, time.Duration(w.limit)); err != nil {
		return err
	}
	return s.deleted(t, w)
}

// deleted prints what a Transaction was before it was deleted.
func (s *session) deleted(t *api.Transaction, w *waits) error {
	w.announce(s, "transaction.backup.janus.io/%s deleted", t.Name)
	if p := w.out.printer(); p != nil {
		return s.printWhole(p, t)
	}
	return nil
}

// forewarned is the interface to the Transactions of a namespace for a user who has been told what their
// deletion leaves. The API server would warn of it again, and point to this command.
func (s *session) forewarned(namespace string) (dynamic.ResourceInterface, error) {
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return client.Resource(api.Resource).Namespace(namespace), nil
}

// untilGone waits until a Transaction does not exist any more.
func (s *session) untilGone(ctx context.Context, client dynamic.ResourceInterface, t *api.Transaction, limit time.Duration) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	last, said := t, ""
	err := wait.PollUntilContextCancel(ctx, 250*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		u, err := client.Get(ctx, t.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && u.GetUID() != t.UID:
			return true, nil
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return false, explain(fmt.Sprintf("wait until Transaction %s/%s is gone", t.Namespace, t.Name), err)
		case err != nil: // It may pass, as with troubles.
			if ctx.Err() == nil && err.Error() != said {
				said = err.Error()
				s.say("Transaction %s/%s cannot be read for now, which is tried again: %v", t.Namespace, t.Name, err)
			}
			return false, nil
		}
		last, err = typed(u)
		return false, err
	})
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &exitError{exitTimeout, fmt.Errorf("transaction %s/%s is not gone after %s: %s; it is deleted as soon as that has ended", t.Namespace, t.Name, limit, sentence(last))}
	}
	return err
}

// begun reports whether a change may have been sent.
func begun(t *api.Transaction) bool {
	return slices.ContainsFunc(t.Status.Items, func(i api.Item) bool {
		return i.State != api.ItemPending && i.State != api.ItemPrepared && i.State != api.ItemSkipped
	})
}

// fate says what happens to the changes of a Transaction that is deleted now.
func fate(t *api.Transaction) string {
	name, n := fmt.Sprintf("Transaction %s/%s is %s", t.Namespace, t.Name, phaseOf(t)), inEffect(t)
	cancel := fmt.Sprintf("kubectl janus cancel %s -n %s", t.Name, t.Namespace)
	switch {
	case !ended(t) && t.Spec.OnDelete == api.DeleteRollback && !t.Spec.DryRun:
		return fmt.Sprintf("%s: its changes are rolled back, and then it is deleted (spec.onDelete is Rollback).", name)
	case !ended(t) && !t.Spec.DryRun && !begun(t):
		return fmt.Sprintf("%s: none of its %d changes has been made yet, and what it still makes before it is gone stays. To roll back instead: %s",
			name, len(t.Spec.Changes), cancel)
	case !ended(t) && !t.Spec.DryRun:
		return fmt.Sprintf("%s: it stops, and what it has changed stays: %d of %d changes, and the one in flight, which no undo can reverse then. "+
			"To roll back instead: %s", name, n, max(len(t.Spec.Changes), len(t.Status.Items)), cancel)
	case n == 0:
		return name + ": none of its changes is in effect."
	case unresolved(t) || !plan.EndedInEffect(&t.Status):
		return fmt.Sprintf("%s: %d of its changes may be in effect, and stay: without its before-images, they can be rolled back by hand only. "+
			"To see them: kubectl janus recover %s -n %s", name, n, t.Name, t.Namespace)
	case t.Status.Revision != 0:
		return fmt.Sprintf("%s: its %s, and its revision %d is deleted with it, so an undo is not possible any more. To undo it before: kubectl janus undo %s -n %s",
			name, stay(n), t.Status.Revision, t.Name, t.Namespace)
	default:
		return fmt.Sprintf("%s: its %s.", name, stay(n))
	}
}

// stay says that changes do.
func stay(n int) string {
	if n == 1 {
		return "change stays in effect"
	}
	return fmt.Sprintf("%d changes stay in effect", n)
}

// inEffect counts the changes that are in effect, or may be.
func inEffect(t *api.Transaction) int {
	n := 0
	for i := range t.Status.Items {
		switch item := &t.Status.Items[i]; {
		case typeOf(t, i) == api.Await:
		case item.State == api.ItemCommitted, item.State == api.ItemUnresolved:
			n++
		}
	}
	return n
}
