package main

import (
	"context"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/revision"
)

func newBlame(s *session) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "blame KIND/NAME", Short: "List the committed Transactions of the namespace that changed an object", Args: cobra.ExactArgs(1),
		Long: `List the committed Transactions of the namespace that changed an object, the latest first, as far as the namespace remembers
them.`,
		Example: "  kubectl janus blame deployment/web",
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := s.namespace()
			if err != nil {
				return err
			}
			v, err := s.surveyor(namespace)
			if err != nil {
				return err
			}
			_, _, t, err := v.named(args[0])
			if err != nil {
				return err
			}
			return s.blame(cmd.Context(), namespace, t, out)
		},
	}
	out.addTo(cmd)
	return cmd
}

// blamed is a change of an object by a committed Transaction.
type blamed struct {
	Revision       int64          `json:"revision"`
	Transaction    string         `json:"transaction"`
	Item           string         `json:"item"`
	Type           api.ChangeType `json:"type"`
	ServiceAccount string         `json:"serviceAccount"`
	Committed      *metav1.Time   `json:"committed,omitempty"`
	inPart         bool
}

// blame lists the revisions of a namespace that changed an object.
func (s *session) blame(ctx context.Context, namespace string, t api.Target, out output) error {
	client, err := s.kube()
	if err != nil {
		return err
	}
	store := revision.NewStore(client)
	entries, err := store.List(ctx, namespace)
	if err != nil {
		return unread("list the revisions of namespace "+namespace, err)
	}
	transactions, err := s.transactions(namespace)
	if err != nil {
		return err
	}
	list := []blamed{}
	for _, e := range slices.Backward(entries) {
		r, err := store.Get(ctx, namespace, e.Number)
		if errclass.Is(err, errclass.NotFound) {
			continue // It was forgotten meanwhile.
		}
		if err != nil {
			return unread(fmt.Sprintf("read revision %d of namespace %s", e.Number, namespace), err)
		}
		what, err := whatOf(ctx, transactions, namespace, e)
		if err != nil {
			return err
		}
		for _, item := range slices.Backward(r.Items) {
			if item.Target.Identity() != t.Identity() {
				continue
			}
			list = append(list, blamed{e.Number, e.Owner.Name, item.Name, item.Type, r.ServiceAccount, what.at, what.inPart})
		}
	}
	switch {
	case !out.text():
		return s.printData(out, list)
	case len(list) == 0:
		s.say("No Transaction that namespace %s remembers has changed %s.", namespace, t.String())
		return nil
	}
	w := tabwriter.NewWriter(s.Out, 0, 0, 3, ' ', 0)
	write(w, "REVISION\tTRANSACTION\tITEM\tTYPE\tSERVICEACCOUNT\tCOMMITTED\n")
	for _, b := range list {
		write(w, "%d\t%s\t%s\t%s\t%s\t%s\n", b.Revision, b.Transaction, b.Item, b.Type, b.ServiceAccount, agoOf(b.Committed, b.inPart))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print who changed %s: %w", t.String(), err)
	}
	return nil
}
