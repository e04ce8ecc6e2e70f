package main

import (
	"context"
	"errors"
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
	limit limit
	// from are the flags that name the manifests, where there are some.
	from string
	// out is how the Transaction is printed in place of messages.
	out output
}

// addAll adds the flags of what acts on a Transaction: wait, and print it.
func (w *waits) addAll(cmd *cobra.Command) {
	w.addTo(cmd)
	w.out.addTo(cmd)
}

// announce says what was done, on standard error if an object is wanted on standard output.
func (w *waits) announce(s *session, format string, args ...any) {
	if w.out.text() {
		s.print(format, args...)
		return
	}
	s.say(format, args...)
}

func (w *waits) addTo(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, "wait until the Transaction has ended, and show what it does")
	cmd.Flags().Var(&w.limit, "timeout", "how long to wait; without it as long as it takes")
}

// carryOut creates a Transaction, and waits for it if that is wanted.
func (w *waits) carryOut(ctx context.Context, s *session, d draft) error {
	made, err := s.create(ctx, d)
	if err != nil {
		return err
	}
	w.announce(s, "transaction.backup.janus.io/%s created", made.Name)
	return w.end(ctx, s, made)
}

// end waits for a Transaction if that is wanted.
func (w *waits) end(ctx context.Context, s *session, t *api.Transaction) error {
	if p := w.out.printer(); p != nil {
		return w.endPrinted(ctx, s, t, p)
	}
	if !w.wait {
		return nil
	}
	ended, err := s.follow(ctx, t, time.Duration(w.limit), s.progress())
	if err != nil {
		return err
	}
	s.summary(s.Out, ended, w.from)
	return outcome(ended)
}

// endPrinted is end for who wants an object on standard output and nothing else: that of
// the Transaction as it has ended, or as it was created if it is not known how it has.
func (w *waits) endPrinted(ctx context.Context, s *session, t *api.Transaction, p printers.ResourcePrinter) error {
	if !w.wait {
		return s.printWhole(p, t)
	}
	ended, err := s.follow(ctx, t, time.Duration(w.limit), s.progress())
	if err != nil {
		return errors.Join(err, s.printWhole(p, t))
	}
	if err := s.printWhole(p, ended); err != nil {
		return err
	}
	s.summary(s.ErrOut, ended, w.from)
	return outcome(ended)
}

const runHelp = `Bring manifests into effect by a Transaction: what exists is patched by a server-side apply, what does not exist is
created, and what --delete names is deleted after that. What others need comes first: Namespaces and
CustomResourceDefinitions, then roles, settings and storage, then workloads, and webhooks last; objects of one kind stay in
the order of the manifests. --keep-order leaves all as it is. Whether an object exists is looked up with your own rights,
now; a change that turns out otherwise is refused, and everything is rolled back.

What the manifests no longer have stays: no field is removed, and no object without --prune. Hooks of Helm and of Argo CD
are made like any other object. run and plan warn of both, and of a Job that exists with another template.

With --wait, the Transaction also waits until what the manifests make is ready, as its own status says: Deployments,
StatefulSets, DaemonSets, ReplicaSets, ReplicationControllers, Pods, CustomResourceDefinitions and APIServices. It does so
when all manifests are in effect, and before anything is deleted. If one is not ready after --ready-timeout, or fails
before, everything is rolled back. Not waited for are other kinds, such as Jobs, claims and custom resources, and
Deployments that are paused. --no-ready leaves it out.

Contents of Secrets and of other sensitive kinds, and contents that do not fit into a Transaction, are stored beside it in
Secrets and ConfigMaps, which it owns and which you must be allowed to create. janusd says which kinds are sensitive; if
that cannot be read, all are taken for it.

If all objects are as the manifests say, and ready where that is waited for, nothing is created, unless you set --always or
-o. Your own rights to read them are enough to see that.

At a terminal, the plan is shown first, as kubectl janus plan shows it, and you are asked whether to go on; --yes leaves out
both. Without a name, the Transaction is named after the first file, directory or artifact.

With --set, the Transaction is named after the set and a hash of the manifests and flags. If the last Transaction of the
set has made the same changes, nothing is created, and if it is under way, no second one is. The objects get the label of
an ApplySet, and the ConfigMap janus-set-NAME is its parent; what is part of another set is refused. With --prune, what
earlier runs have made and the manifests no longer have is deleted in the same Transaction; plan shows it first.

OCI artifacts are read by the plugin, with the credentials that docker, oras or flux have stored. The Transaction has
their digests in the annotation janus.io/artifacts.

If the manifest is a Transaction, that one is created, and waits only for what it says itself. If it is too large, its
contents are stored beside it.`

func newRun(s *session) *cobra.Command {
	var w wishes
	var wait waits
	var dryRun bool
	var how running
	flags := genericclioptions.NewPrintFlags("created")
	cmd := &cobra.Command{
		Aliases: []string{"apply"},
		Use:     "run {-f FILE | -k DIRECTORY | --delete KIND/NAME} --service-account NAME",
		Short:   "Bring manifests into effect by a Transaction",
		Long:    runHelp,
		Example: `  kubectl janus run -f app.yaml --service-account deployer --wait
  kustomize build . | kubectl janus run -f - --delete configmap/old --service-account deployer
  kubectl janus run -f app.yaml --set app --prune --service-account deployer --wait
  kubectl janus run -f oci://ghcr.io/example/app:v2 --service-account deployer --wait
  kubectl janus run -k overlays/production --service-account deployer --dry-run -o yaml > transaction.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			printer, err := printerOf(flags)
			if err != nil {
				return err
			}
			w.ready.waits, wait.from = wait.wait, w.inputFlags()
			u, err := w.transaction(cmd.Context(), s)
			if err != nil {
				return err
			}
			if dryRun {
				return s.show(printer, u.Unstructured)
			}
			if flags.OutputFlagSpecified() {
				how.printer = printer
			}
			return s.run(cmd.Context(), u, &wait, how)
		},
	}
	w.addTo(cmd)
	wait.addTo(cmd)
	addDryRun(cmd, &dryRun)
	cmd.Flags().BoolVarP(&how.yes, "yes", "y", false, "at a terminal, show no plan, and do not ask")
	cmd.Flags().BoolVar(&how.always, "always", false, "create a Transaction also if there is nothing to change")
	flags.AddFlags(cmd)
	completeOutput(cmd, flags)
	return cmd
}

// running is how a Transaction is run.
type running struct {
	// yes is set not to ask, and always to create a Transaction that would change nothing.
	yes, always bool
	// printer prints the Transaction; nil if nobody wants it.
	printer printers.ResourcePrinter
}

// nothing is said of a run that has nothing to do.
const nothing = "nothing to change: all objects are as the manifests say"

// run creates a Transaction, or finds that of its set which makes the same changes, and waits
// for it if that is wanted. With a printer nothing else is on standard output.
func (s *session) run(ctx context.Context, d draft, w *waits, how running) error {
	switch known, err := s.inSet(ctx, d); {
	case err != nil:
		return err
	case known != nil && how.printer != nil:
		return w.endPrinted(ctx, s, known, how.printer)
	case known != nil:
		return s.settled(ctx, known, w)
	}
	// Who wants a Transaction printed gets one.
	if !how.always && how.printer == nil && s.nothingToChange(ctx, d) {
		s.print(nothing)
		return nil
	}
	asked, idle, err := s.askedFor(ctx, d, w, how)
	if idle {
		s.print(nothing)
	}
	if idle || err != nil {
		return err
	}
	t, err := s.create(ctx, d)
	switch {
	case err != nil:
		return err
	case how.printer != nil:
		if w.wait {
			s.say("transaction.backup.janus.io/%s created", t.Name)
		}
		return w.endPrinted(ctx, s, t, how.printer)
	}
	s.print("transaction.backup.janus.io/%s created", t.Name)
	if _, _, live := terminal(s.ErrOut); !asked && (!live || !w.wait) {
		list(s.ErrOut, t.Spec.Changes)
	}
	return w.end(ctx, s, t)
}

// askedFor shows a person at a terminal the plan, and asks, if the question can be seen. It reports whether it has asked, and that
// there is nothing to do.
func (s *session) askedFor(ctx context.Context, d draft, w *waits, how running) (asked, idle bool, err error) {
	if dry, _, _ := unstructured.NestedBool(d.Object, "spec", "dryRun"); dry || how.yes || !s.interactive() || s.questions() == nil {
		return false, false, nil
	}
	a := asking{out: s.Out, question: "Make these changes?", otherwise: "nothing is changed", from: w.from}
	if how.printer != nil {
		a.out = s.ErrOut
	}
	idle, err = s.wanted(ctx, d, a)
	return true, idle && !how.always && how.printer == nil, err
}

// printerOf prints objects as -o says, and as YAML if it says nothing. It is asked for
// before anything is done, so that a wrong -o does nothing.
func printerOf(flags *genericclioptions.PrintFlags) (printers.ResourcePrinter, error) {
	if !flags.OutputFlagSpecified() {
		return &printers.YAMLPrinter{}, nil
	}
	printer, err := flags.ToPrinter()
	if err != nil {
		return nil, fmt.Errorf("--output: %w", err)
	}
	return printer, nil
}

// show prints an object.
func (s *session) show(p printers.ResourcePrinter, u *unstructured.Unstructured) error {
	if err := p.PrintObj(u, s.Out); err != nil {
		return fmt.Errorf("print %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}

// printWhole prints a Transaction with its status.
func (s *session) printWhole(p printers.ResourcePrinter, t *api.Transaction) error {
	u, err := whole(t)
	if err != nil {
		return err
	}
	return s.show(p, u)
}

// list prints what a Transaction is to do.
func list(out io.Writer, changes []api.Change) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i, c := range changes {
		write(w, "  %s\t%s\t%s\n", changeName(i, c), c.Type, c.Target.String())
	}
	_ = w.Flush()
}

func changeName(i int, c api.Change) string {
	if c.Name != "" {
		return c.Name
	}
	return fmt.Sprint(i)
}
