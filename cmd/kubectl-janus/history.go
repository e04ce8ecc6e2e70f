package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/revision"
)

func newHistory(s *session) *cobra.Command {
	var number int64
	cmd := &cobra.Command{
		Use:   "history [TRANSACTION]",
		Short: "List the Transactions of the namespace that can be undone, or show what one of them changed", Args: cobra.MaximumNArgs(1),
		Long: `List the Transactions of the namespace that can be undone: those that have committed, and those that have failed with
changes in effect, which are marked "in part". SAME AS names the newest one before, after which the
objects were as they are after this one, defaults and amounts such as 1000m and 1 considered. With the name of one, or with
--revision, show what it changed, field by field: the values before, and those that the dry run of the change gave. They are
read from the before-images with your own rights. Values of Secrets and of other confidential content are not shown.`,
		Example: `  kubectl janus history
  kubectl janus history release-2
  kubectl janus history --revision 1`,
		ValidArgsFunction: s.names,
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := s.namespace()
			switch {
			case err != nil:
				return err
			case len(args) > 0:
				return s.rememberedAs(cmd.Context(), namespace, args[0], number)
			case number != 0:
				return s.remembered(cmd.Context(), namespace, number)
			}
			return s.history(cmd, namespace)
		},
	}
	cmd.Flags().Int64Var(&number, "revision", 0, "show what the revision with this number has changed")
	return cmd
}

func (s *session) history(cmd *cobra.Command, namespace string) error {
	client, err := s.kube()
	if err != nil {
		return err
	}
	entries, err := revision.NewStore(client).List(cmd.Context(), namespace)
	if err != nil {
		return unread("list the revisions of namespace "+namespace, err)
	}
	if len(entries) == 0 {
		s.say("Namespace %s remembers no Transaction.", namespace)
		return nil
	}
	w := tabwriter.NewWriter(s.Out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "REVISION\tTRANSACTION\tPROGRESS\tCOMMITTED\tSAME AS")
	transactions, err := s.transactions(namespace)
	if err != nil {
		return err
	}
	all, left := make([]remembered, len(entries)), make([]revision.After, len(entries))
	for n, e := range entries {
		if all[n], err = whatOf(cmd.Context(), transactions, namespace, e); err != nil {
			return err
		}
		left[n] = all[n].after
	}
	for n, same := range revision.SameAs(left) {
		as := ""
		if same >= 0 {
			as = fmt.Sprintf("revision %d", entries[same].Number)
		}
		if entries[n].Unchanged {
			as = strings.TrimPrefix(as+", nothing was written", ", ")
		}
		write(w, "%d\t%s\t%s\t%s", entries[n].Number, entries[n].Owner.Name, all[n].progress, all[n].ago)
		if as != "" { // Without it, nothing comes after the time.
			write(w, "\t%s", as)
		}
		write(w, "\n")
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the history: %w", err)
	}
	return nil
}

// remembered is what the Transaction of a revision tells.
type remembered struct {
	// progress is how many changes it has made, and ago how long ago.
	progress, ago string
	after         revision.After
}

func whatOf(ctx context.Context, transactions dynamic.ResourceInterface, namespace string, e revision.Entry) (remembered, error) {
	u, err := transactions.Get(ctx, e.Owner.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return remembered{ago: "(deleted)"}, nil
	case err != nil:
		return remembered{}, explain("read Transaction "+namespace+"/"+e.Owner.Name, err)
	}
	t, err := typed(u)
	if err != nil {
		return remembered{}, err
	}
	t.Derive()
	out := remembered{progress: t.Status.Progress, after: afterOf(t)}
	if t.Status.CompletionTime != nil {
		out.ago = duration.HumanDuration(time.Since(t.Status.CompletionTime.Time)) + " ago"
	}
	if plan.EndedInPart(&t.Status) {
		out.ago += ", in part"
	}
	return out, nil
}

// afterOf is what a Transaction has left of its targets.
func afterOf(t *api.Transaction) revision.After {
	order, err := plan.Order(t)
	if err != nil {
		return nil
	}
	out := revision.After{}
	for _, i := range order {
		if i < len(t.Status.Items) && t.Status.Items[i].Changes() {
			out.Enter(t.Status.Items[i].Target, t.Spec.Changes[i].Type, t.Status.Items[i].Before)
		}
	}
	return out
}

// unread says why revisions cannot be read. What was being done is said once. Who may see
// Transactions may not see revisions for that.
func unread(doing string, err error) error {
	var own *errclass.Error
	if errors.As(err, &own) && own.Err != nil {
		err = own.Err
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s: %w; the ClusterRole view of Kubernetes grants what is needed", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
