package main

import (
	"context"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/revision"
)

func newBlame(s *session) *cobra.Command {
	return &cobra.Command{
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
			return s.blame(cmd.Context(), namespace, t)
		},
	}
}

// blame lists the revisions of a namespace that changed an object.
func (s *session) blame(ctx context.Context, namespace string, t api.Target) error {
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
	w := tabwriter.NewWriter(s.Out, 0, 0, 3, ' ', 0)
	found := false
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
			if !found {
				write(w, "REVISION\tTRANSACTION\tITEM\tTYPE\tSERVICEACCOUNT\tCOMMITTED\n")
				found = true
			}
			write(w, "%d\t%s\t%s\t%s\t%s\t%s\n", e.Number, e.Owner.Name, item.Name, item.Type, r.ServiceAccount, what.ago)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print who changed %s: %w", t.String(), err)
	}
	if !found {
		s.say("No Transaction that namespace %s remembers has changed %s.", namespace, t.String())
	}
	return nil
}
