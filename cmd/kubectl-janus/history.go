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
	var out output
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
				return s.rememberedAs(cmd.Context(), namespace, args[0], number, out)
			case number != 0:
				return s.remembered(cmd.Context(), namespace, number, out)
			}
			return s.history(cmd, namespace, out)
		},
	}
	out.addTo(cmd)
	cmd.Flags().Int64Var(&number, "revision", 0, "show what the revision with this number has changed")
	return cmd
}

// historyEntry is one line of the history.
type historyEntry struct {
	Revision    int64  `json:"revision"`
	Transaction string `json:"transaction"`
	Progress    string `json:"progress,omitempty"`
	// Committed is when; empty if the Transaction was deleted.
	Committed *metav1.Time `json:"committed,omitempty"`
	InPart    bool         `json:"inPart,omitempty"`
	// SameAs is the newest revision before after which the objects were the same.
	SameAs int64 `json:"sameAs,omitempty"`
	// Unchanged is set if nothing was written.
	Unchanged bool `json:"unchanged,omitempty"`
}

func (s *session) history(cmd *cobra.Command, namespace string, out output) error {
	client, err := s.kube()
	if err != nil {
		return err
	}
	entries, err := revision.NewStore(client).List(cmd.Context(), namespace)
	if err != nil {
		return unread("list the revisions of namespace "+namespace, err)
	}
	if len(entries) == 0 && out.text() {
		s.say("Namespace %s remembers no Transaction.", namespace)
		return nil
	}
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
	list := []historyEntry{}
	for n, same := range revision.SameAs(left) {
		e := historyEntry{
			Revision: entries[n].Number, Transaction: entries[n].Owner.Name, Progress: all[n].progress, Committed: all[n].at, InPart: all[n].inPart, Unchanged: entries[n].Unchanged,
		}
		if same >= 0 {
			e.SameAs = entries[same].Number
		}
		list = append(list, e)
	}
	if !out.text() {
		return s.printData(out, list)
	}
	return s.printHistory(list)
}

// printHistory prints it for people.
func (s *session) printHistory(list []historyEntry) error {
	w := tabwriter.NewWriter(s.Out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "REVISION\tTRANSACTION\tPROGRESS\tCOMMITTED\tSAME AS")
	for _, e := range list {
		as := ""
		if e.SameAs != 0 {
			as = fmt.Sprintf("revision %d", e.SameAs)
		}
		if e.Unchanged {
			as = strings.TrimPrefix(as+", nothing was written", ", ")
		}
		write(w, "%d\t%s\t%s\t%s", e.Revision, e.Transaction, e.Progress, agoOf(e.Committed, e.InPart))
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
	// progress is how many changes it has made, and at when it ended; nil if it was deleted.
	progress string
	at       *metav1.Time
	inPart   bool
	after    revision.After
}

// agoOf says how long ago a Transaction has ended.
func agoOf(at *metav1.Time, inPart bool) string {
	text := "(deleted)"
	if at != nil {
		text = duration.HumanDuration(time.Since(at.Time)) + " ago"
	}
	if inPart {
		text += ", in part"
	}
	return text
}

func whatOf(ctx context.Context, transactions dynamic.ResourceInterface, namespace string, e revision.Entry) (remembered, error) {
	u, err := transactions.Get(ctx, e.Owner.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return remembered{}, nil
	case err != nil:
		return remembered{}, explain("read Transaction "+namespace+"/"+e.Owner.Name, err)
	}
	t, err := typed(u)
	if err != nil {
		return remembered{}, err
	}
	t.Derive()
	return remembered{t.Status.Progress, t.Status.CompletionTime, plan.EndedInPart(&t.Status), afterOf(t)}, nil
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
