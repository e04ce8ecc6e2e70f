package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/snapshot"
)

func newRecover(s *session) *cobra.Command {
	var item string
	var now bool
	var wait waits
	flags := genericclioptions.NewPrintFlags("")
	cmd := &cobra.Command{
		Use: "recover NAME", Short: "Show what a failed rollback has left, and what to do about each item, or try again now", Args: cobra.ExactArgs(1),
		ValidArgsFunction: s.names,
		Long: `Show what a failed rollback has left, and what to do about each item. With --item the before-image of an item is
printed: the object as it was before it was changed, which needs the right to read where it is kept. With --now janusd tries
at once to roll back every item that is left, whatever stood in the way: do that when the cause is removed.`,
		Example: `  kubectl janus recover deploy-v2
  kubectl janus recover deploy-v2 --item config > before.yaml
  kubectl janus recover deploy-v2 --now --wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			printer, err := printerOf(flags)
			if err != nil {
				return err
			}
			t, err := s.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			switch {
			case item != "":
				return s.beforeImage(cmd.Context(), t, item, printer)
			case flags.OutputFlagSpecified():
				if err := wait.out.Set(*flags.OutputFormat); err != nil {
					return errors.New("--output is json or yaml, but for a before-image: name its item with --item")
				}
			}
			if now {
				return s.tryAgain(cmd, t, wait)
			}
			return s.leftovers(t, wait.out)
		},
	}
	cmd.Flags().StringVar(&item, "item", "", "print the before-image of this item")
	cmd.Flags().BoolVar(&now, "now", false, "retry the failed compensations now")
	cmd.MarkFlagsMutuallyExclusive("item", "now")
	wait.addTo(cmd)
	flags.AddFlags(cmd)
	completeOutput(cmd, flags)
	return cmd
}

// tryAgain asks janusd to take up a failed rollback once more. What is asked for follows
// from what has been done, so asking twice is asking once.
func (s *session) tryAgain(cmd *cobra.Command, t *api.Transaction, wait waits) error {
	switch {
	case !t.Status.Phase.Terminal():
		return fmt.Errorf("transaction %s/%s has not ended: %s", t.Namespace, t.Name, sentence(t))
	case !unresolved(t):
		return fmt.Errorf("transaction %s/%s has left nothing to roll back: it is %s", t.Namespace, t.Name, t.Status.Phase)
	case t.Status.RollbackRef == nil:
		return fmt.Errorf("transaction %s/%s has no before-images any more: restore by hand what it has left", t.Namespace, t.Name)
	case t.Spec.Cancel == api.CancelStop:
		return fmt.Errorf("transaction %s/%s was stopped: kubectl janus cancel %s -n %s rolls back what it has left", t.Namespace, t.Name, t.Name, t.Namespace)
	case t.Spec.Suspend:
		return fmt.Errorf("transaction %s/%s is suspended: kubectl janus resume %s -n %s resumes it", t.Namespace, t.Name, t.Name, t.Namespace)
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": t.UID, "annotations": map[string]string{api.RecoverAnnotation: fmt.Sprintf("after-version-%d", t.Status.Version)},
	}})
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	if t, err = s.patch(cmd, t, body); err != nil {
		return err
	}
	wait.announce(s, "transaction.backup.janus.io/%s is tried again", t.Name)
	return wait.end(cmd.Context(), s, t)
}

// leftover is an item that could not be rolled back, and what to do about it.
type leftover struct {
	api.Item `json:",inline"`
	Advice   string `json:"advice"`
}

// leftovers prints each item that could not be rolled back.
func (s *session) leftovers(t *api.Transaction, out output) error {
	switch {
	case !t.Status.Phase.Terminal():
		return fmt.Errorf("transaction %s/%s has not ended: %s", t.Namespace, t.Name, sentence(t))
	case !out.text():
		list := []leftover{}
		for _, item := range t.Status.Items {
			if item.State == api.ItemUnresolved {
				list = append(list, leftover{item, adviceFor(t, &item)})
			}
		}
		return s.printData(out, list)
	case !unresolved(t):
		s.print("Transaction %s/%s has left nothing: it is %s.", t.Namespace, t.Name, t.Status.Phase)
		return nil
	}
	s.print("Transaction %s/%s: %s", t.Namespace, t.Name, sentence(t))
	for i, item := range t.Status.Items {
		if item.State != api.ItemUnresolved {
			continue
		}
		s.print("")
		describeItem(s.Out, t, i)
		s.print("    What to do: %s", adviceFor(t, &item))
		if item.Before != nil && item.Before.UID != "" && t.Status.RollbackRef != nil {
			s.print("    As it was:  kubectl janus recover %s -n %s --item %s", t.Name, t.Namespace, item.Name)
		}
	}
	s.print("\nThe before-images stay until the Transaction is deleted: delete it when nothing of this is needed any more.")
	return nil
}

// triesAgain says when failed compensations are retried.
const triesAgain = "janusd tries again by itself half a minute, two and eight minutes after the failure; kubectl janus recover NAME --now does it at once"

// adviceFor is advice with the name of the Transaction.
func adviceFor(t *api.Transaction, item *api.Item) string {
	return strings.ReplaceAll(advice(item), " NAME", " "+t.Name+" -n "+t.Namespace)
}

// advice says what to do about an item that could not be rolled back. NAME stands for the
// Transaction and its namespace.
func advice(item *api.Item) string {
	switch item.Reason {
	case errclass.FieldConflict:
		return "another client has written the fields above since, and their values are there. If that is right, do nothing; if not, set those fields to what they were."
	case errclass.Altered:
		return "the API server did not store the fields above as they were. See which webhook, policy or schema changes them, and then set those fields to what they were."
	case errclass.Drifted, errclass.AlreadyExists:
		return "another client has replaced, deleted or written the object since. Compare it with the before-image, and decide which is right. If theirs is not wanted, delete it, and then: kubectl janus recover NAME --now"
	case errclass.RollbackNotReady:
		return "the object is as it was before the change, and does not work: see in the message what it lacks, and in its events why. When it is ready again: kubectl janus recover NAME --now, which rolls back what was left for its sake, too"
	case errclass.ControllerMade:
		return "a controller has made another object in its place. Compare it with the before-image; if the old one is wanted, keep the controller from making its own, delete that, and then: kubectl janus recover NAME --now"
	case errclass.AccessDenied, errclass.ServiceAccountGone:
		return "give the ServiceAccount the right that the message names. " + triesAgain + "."
	case errclass.AlreadyAllocated:
		return "another object has the port or the address. Free it. " + triesAgain + "."
	case errclass.NotFound, errclass.NamespaceNotFound:
		return "make what the message names. " + triesAgain + "."
	case errclass.NotEmpty:
		return "others keep objects in it. Move or delete those. " + triesAgain + "."
	case errclass.OwnerGone:
		return "re-create its owner and add the reference by hand, or delete the object."
	case errclass.BeforeImageLost, errclass.BeforeImageTampered:
		return "the before-image is gone or was edited, so nothing was restored from it. Restore the object from where it is described, such as a Git repository or a backup."
	case errclass.Blocked:
		if item.BlockedBy == "" {
			return "a later change of the same object could not be rolled back; do what is said of that one: both are tried again together."
		}
		return fmt.Sprintf("do what is said of item %s: a recovery rolls back that item first, and then this one. If both are to stay, do nothing.", item.BlockedBy)
	case errclass.Cancelled:
		return "it was left because the Transaction was stopped. To have it rolled back after all: kubectl janus cancel NAME"
	case errclass.Irreversible:
		if len(item.Conflicts) == 0 {
			return "it was kept, because what the message names would be destroyed with it. If that may go, delete it by hand, and then: kubectl janus recover NAME --now"
		}
		return "the fields above were left, because a controller would destroy what the message names. If that may go, set them to what they were, and then: kubectl janus recover NAME --now"
	case errclass.Invalid, errclass.TooLarge:
		if !item.SetAside {
			return "the API server refuses the object as it was, and it is not tried again by itself. Remove what the message names, and then: kubectl janus recover NAME --now; or make it by hand."
		}
	}
	return "remove what the message names. " + triesAgain + "; after that, set the object to what it was by hand."
}

// beforeImage prints an object as it was before an item changed it.
func (s *session) beforeImage(ctx context.Context, t *api.Transaction, name string, p printers.ResourcePrinter) error {
	at := slices.IndexFunc(t.Status.Items, func(i api.Item) bool { return i.Name == name })
	if at < 0 {
		var names []string
		for _, item := range t.Status.Items {
			names = append(names, item.Name)
		}
		return fmt.Errorf("transaction %s/%s has no item %q; it has %s", t.Namespace, t.Name, name, strings.Join(names, ", "))
	}
	item := t.Status.Items[at]
	switch {
	case t.Status.RollbackRef == nil || item.Before == nil:
		return fmt.Errorf("transaction %s/%s keeps no before-image of item %s", t.Namespace, t.Name, name)
	case item.Before.UID == "":
		return fmt.Errorf("%s did not exist before item %s", item.Target.String(), name)
	}
	client, err := s.kube()
	if err != nil {
		return err
	}
	owner := snapshot.Owner{Namespace: t.Namespace, Name: t.Name, UID: t.UID}
	record, err := snapshot.NewStore(client, nil).Load(ctx, owner, *t.Status.RollbackRef, *item.Before)
	if err != nil {
		return fmt.Errorf("read the before-image of item %s: %w", name, err)
	}
	if record.Before == nil {
		return errors.New("the before-image has no object")
	}
	return s.show(p, fieldmerge.Strip(record.Before))
}
