package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"

	api "janus.io/janus/api/v1alpha1"
)

// getting is one call of get.
type getting struct {
	*session
	everywhere bool
	watch      bool
	selector   string
	phase      string
	wide       bool
	only       string // the name of the one that is watched; empty for all
	flags      *genericclioptions.PrintFlags
}

func newGet(s *session) *cobra.Command {
	g := &getting{session: s, flags: genericclioptions.NewPrintFlags("")}
	cmd := &cobra.Command{
		Use:     "get [NAME...]",
		Aliases: []string{"list", "ls"},
		Short:   "List Transactions",
		Example: `  kubectl janus get -A --phase Failed
  kubectl janus get @latest -o yaml
  kubectl janus get -w`,
		ValidArgsFunction: s.names,
		RunE: func(cmd *cobra.Command, args []string) error {
			g.wide = *g.flags.OutputFormat == "wide"
			return g.run(cmd.Context(), args)
		},
	}
	cmd.Flags().BoolVarP(&g.everywhere, "all-namespaces", "A", false, "of all namespaces")
	cmd.Flags().BoolVarP(&g.watch, "watch", "w", false, "keep watching them")
	cmd.Flags().StringVarP(&g.selector, "selector", "l", "", "those with these labels")
	cmd.Flags().StringVar(&g.phase, "phase", "", "those in this phase, such as Failed")
	g.flags.AddFlags(cmd)
	cmd.Flags().Lookup("output").Usage += " Or wide."
	completeOutput(cmd, g.flags, "wide")
	_ = cmd.RegisterFlagCompletionFunc("phase", cobra.FixedCompletions(phases(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// selectorError says what is wrong with a selector.
func selectorError(text string) error {
	_, err := labels.Parse(text)
	return err
}

func phases() []string {
	var out []string
	for _, p := range []api.Phase{
		api.PhasePending, api.PhasePreparing, api.PhasePrepared, api.PhaseCommitting, api.PhaseCommitted,
		api.PhaseRollingBack, api.PhaseRolledBack, api.PhasePlanned, api.PhaseFailed,
	} {
		out = append(out, string(p))
	}
	return out
}

func (g *getting) run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && (g.everywhere || g.selector != "" || g.phase != ""):
		return errors.New("give either names, or which to select by -A, -l or --phase")
	case g.phase != "" && !slices.Contains(phases(), g.phase):
		return fmt.Errorf("--phase=%s: want one of %s", g.phase, strings.Join(phases(), ", "))
	case selectorError(g.selector) != nil:
		return fmt.Errorf("--selector=%s: %w", g.selector, selectorError(g.selector))
	case g.watch && len(args) > 1:
		return errors.New("--watch takes one name at most")
	}
	namespace, err := g.namespace()
	if err != nil {
		return err
	}
	if g.everywhere {
		namespace = ""
	}
	found, version, err := g.find(ctx, namespace, args)
	if err != nil {
		return err
	}
	if len(found) == 0 && !g.watch && g.asTable() {
		g.say("%s", g.none(namespace))
		return nil
	}
	printer, err := g.printer()
	if err != nil {
		return err
	}
	if err := printer(found, len(args) == 1); err != nil {
		return err
	}
	if !g.watch {
		return nil
	}
	return g.goOn(ctx, namespace, version, printer)
}

func (g *getting) none(namespace string) string {
	if namespace == "" {
		return "No Transactions found."
	}
	return "No Transactions found in namespace " + namespace + "."
}

// options select what is wanted. A Transaction that no janusd has seen has no phase yet.
func (g *getting) options() metav1.ListOptions {
	o := metav1.ListOptions{LabelSelector: g.selector}
	if g.only != "" {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", g.only).String()
	}
	if g.phase != "" && g.phase != string(api.PhasePending) {
		o.FieldSelector = "status.phase=" + g.phase
	}
	return o
}

// wants reports whether a Transaction is in the phase that is asked for, which options cannot
// always select.
func (g *getting) wants(t *api.Transaction) bool {
	return g.phase == "" || string(phaseOf(t)) == g.phase
}

func (g *getting) find(ctx context.Context, namespace string, args []string) (found []*api.Transaction, version string, err error) {
	if len(args) == 0 {
		found, version, err = g.list(ctx, namespace, g.options())
		return slices.DeleteFunc(found, func(t *api.Transaction) bool { return !g.wants(t) }), version, err
	}
	if g.watch {
		return g.findOne(ctx, namespace, args[0])
	}
	for _, name := range args {
		t, err := g.read(ctx, name)
		if err != nil {
			return nil, "", err
		}
		found, version = append(found, t), t.ResourceVersion
	}
	return found, version, nil
}

// findOne finds the one that is to be watched, and the version of a list that has it alone: what has come
// after the version of the object itself, the API server may not remember any more.
func (g *getting) findOne(ctx context.Context, namespace, name string) (found []*api.Transaction, version string, err error) {
	t, err := g.read(ctx, name)
	if err != nil {
		return nil, "", err
	}
	g.only = t.Name
	if found, version, err = g.list(ctx, namespace, g.options()); len(found) == 0 {
		found = []*api.Transaction{t} // It was deleted just now.
	}
	return found, version, err
}

// asTable reports whether a table is wanted, and not an object.
func (g *getting) asTable() bool { return g.wide || !g.flags.OutputFlagSpecified() }

// printing prints Transactions; one that was named alone is not made a list.
type printing func(list []*api.Transaction, alone bool) error

func (g *getting) printer() (printing, error) {
	if g.asTable() {
		return g.table(), nil
	}
	printer, err := g.flags.ToPrinter()
	if err != nil {
		return nil, fmt.Errorf("--output: %w", err)
	}
	return func(list []*api.Transaction, alone bool) error {
		all := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
		for _, t := range list {
			u, err := whole(t)
			if err != nil {
				return err
			}
			all.Items = append(all.Items, *u)
		}
		if alone {
			return printer.PrintObj(&all.Items[0], g.Out)
		}
		return printer.PrintObj(all, g.Out)
	}, nil
}

// goOn prints each version that comes after those of the list.
func (g *getting) goOn(ctx context.Context, namespace, version string, printer printing) error {
	client, err := g.transactions(namespace)
	if err != nil {
		return err
	}
	// What the watcher would print of its troubles is for developers.
	w, err := watchtools.NewRetryWatcherWithContext(klog.NewContext(ctx, klog.Logger{}), version, watcher{client, g.options()})
	if err != nil {
		return fmt.Errorf("watch Transactions: %w", err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		u, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Error || !ok:
			return explain("watch Transactions", apierrors.FromObject(event.Object))
		case event.Type == watch.Bookmark, event.Type == watch.Deleted && g.phase != "": // It may have another phase now.
			continue
		}
		t, err := typed(u)
		if err != nil {
			return err
		}
		if !g.wants(t) {
			continue
		}
		if err := printer([]*api.Transaction{t}, true); err != nil {
			return err
		}
	}
	return nil
}

// watcher watches what its options select.
type watcher struct {
	client  dynamic.ResourceInterface
	options metav1.ListOptions
}

// WatchWithContext implements cache.WatcherWithContext.
func (w watcher) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.FieldSelector, o.LabelSelector = w.options.FieldSelector, w.options.LabelSelector
	return w.client.Watch(ctx, o)
}
