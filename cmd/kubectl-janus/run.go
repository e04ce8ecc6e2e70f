package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	api "janus.io/janus/api/v1alpha1"
)

// waits are the flags of what may wait for the end of a Transaction.
type waits struct {
	wait  bool
	limit time.Duration
}

func (w *waits) addTo(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, "wait until the Transaction has ended, and show what it does")
	cmd.Flags().DurationVar(&w.limit, "timeout", 0, "how long to wait; without it as long as it takes")
}

// end waits for a Transaction if that is wanted.
func (w *waits) end(ctx context.Context, s *session, t *api.Transaction) error {
	if !w.wait {
		return nil
	}
	ended, err := s.follow(ctx, t, w.limit, s.progress())
	if err != nil {
		return err
	}
	s.summary(ended)
	return outcome(ended)
}

func newRun(s *session) *cobra.Command {
	var w wishes
	var wait waits
	var dryRun bool
	flags := genericclioptions.NewPrintFlags("created")
	cmd := &cobra.Command{
		Use:   "run {-f FILE | -k DIRECTORY | --delete KIND/NAME} --service-account NAME",
		Short: "Bring manifests into effect by a Transaction",
		Long: `Bring manifests into effect by a Transaction: what exists is patched by a server-side apply, what does not exist is
created, and what --delete names is deleted after that. The changes are made in the order of the manifests. Whether an
object exists is looked up with your own rights, now; a change that turns out otherwise is refused, and everything is
taken back.

If the manifest is a Transaction, that one is created.`,
		Example: `  kubectl janus run -f app.yaml --service-account deployer --wait
  kustomize build . | kubectl janus run -f - --delete configmap/old --service-account deployer
  kubectl janus run -k overlays/production --service-account deployer --dry-run -o yaml > transaction.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			u, err := w.transaction(cmd.Context(), s)
			if err != nil {
				return err
			}
			if dryRun {
				return show(s, flags, u)
			}
			t, err := s.create(cmd.Context(), u)
			if err != nil {
				return err
			}
			if flags.OutputFlagSpecified() {
				made, err := untyped(t)
				if err != nil {
					return err
				}
				if err := show(s, flags, made); err != nil {
					return err
				}
				return wait.end(cmd.Context(), s, t)
			}
			s.print("transaction.backup.janus.io/%s created", t.Name)
			list(s.ErrOut, t.Spec.Changes)
			return wait.end(cmd.Context(), s, t)
		},
	}
	w.addTo(cmd)
	wait.addTo(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the Transaction, and create nothing")
	flags.AddFlags(cmd)
	return cmd
}

// show prints an object as -o says, and as YAML if it says nothing.
func show(s *session, flags *genericclioptions.PrintFlags, u *unstructured.Unstructured) error {
	var printer printers.ResourcePrinter = &printers.YAMLPrinter{}
	if flags.OutputFlagSpecified() {
		var err error
		if printer, err = flags.ToPrinter(); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	if err := printer.PrintObj(u, s.Out); err != nil {
		return fmt.Errorf("print Transaction %s: %w", u.GetName(), err)
	}
	return nil
}

// list prints what a Transaction is to do.
func list(out io.Writer, changes []api.Change) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i, c := range changes {
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\n", changeName(i, c), c.Type, targetName(c.Target))
	}
	_ = w.Flush()
}

func changeName(i int, c api.Change) string {
	if c.Name != "" {
		return c.Name
	}
	return fmt.Sprint(i)
}

// targetName names an object as Kind namespace/name.
func targetName(t api.Target) string {
	if t.Namespace == "" {
		return t.Kind + " " + t.Name
	}
	return t.Kind + " " + t.Namespace + "/" + t.Name
}
