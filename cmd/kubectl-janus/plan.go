package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
)

func newPlan(s *session) *cobra.Command {
	var w wishes
	var undo undoWishes
	var keep bool
	var undone string
	most := limit(planTimeout)
	cmd := &cobra.Command{
		Aliases: []string{"diff"},
		Use:     "plan {-f FILE | -k DIRECTORY | --delete KIND/NAME | --undo NAME} --service-account NAME",
		Short:   "Show what run would change, and what is wrong with it",
		Long: `Show what run would change, and what is wrong with it. janusd tries every change without effect, as the ServiceAccount
that would make it, in a Transaction with dryRun that is deleted afterwards. Values of Secrets and of other confidential
content are not shown. Contents are stored as run does it, and deleted with the Transaction. Of what would be created,
the fields of the manifests are shown, and with --defaults also what the API server adds, but for what it chooses only then,
such as addresses.

The environment variable KUBECTL_EXTERNAL_DIFF names a program that is to show it, as for kubectl diff: it is started
with two directories, of what is there and what would be, and then its options, which may have letters, digits, dashes
and equals signs. They have a file for each object that would change, with those fields that would, confidential values
masked. The exit code is that of the program, if it is 0 or 1, and 1 in place of 0 where something cannot be told yet.

Exit codes: 0 nothing would change, 1 something would, 2 it could not be made or not be told, or not in time.`,
		Example: `  kubectl janus plan -f app.yaml --service-account deployer
  kubectl janus plan --undo release-2
  KUBECTL_EXTERNAL_DIFF="colordiff -u -N" kubectl janus plan -f app.yaml --service-account deployer`,
		Args: func(cmd *cobra.Command, args []string) error { return trouble(cobra.NoArgs(cmd, args)) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if undone == "" {
				return trouble(s.plan(cmd.Context(), &w, keep, time.Duration(most)))
			}
			if w.given() {
				return trouble(errors.New("--undo names what is undone: leave out -f, -k and --delete"))
			}
			undo.account, undo.policy, undo.acceptLoss = w.account, w.policy, w.acceptLoss
			d, err := undo.draft(cmd.Context(), s, []string{undone}, false)
			if err != nil {
				return trouble(err)
			}
			return trouble(s.planOfDraft(cmd.Context(), d, time.Duration(most), w.planOut))
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return trouble(plainFlagError(cmd, err)) })
	w.addTo(cmd)
	cmd.Flags().BoolVar(&w.ready.waits, "wait", false, "plan what run does with --wait, which also waits until what it makes is ready")
	cmd.Flags().StringVar(&undone, "undo", "", "plan the undo of this Transaction, as undo --dry-run does")
	cmd.Flags().BoolVar(&w.defaults, "defaults", false, "of what would be created, show also what the API server adds to the manifests")
	_ = cmd.RegisterFlagCompletionFunc("undo", s.names)
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the Transaction with the plan")
	cmd.Flags().Var(&most, "timeout", "how long to wait for the plan")
	w.planOut.addTo(cmd)
	return cmd
}

// trouble gives every error that has no exit code of its own that of diff.
func trouble(err error) error {
	var own *exitError
	switch {
	case err == nil || errors.As(err, &own):
		return err
	case interrupted(err):
		return &exitError{exitTrouble, errors.New("interrupted")}
	default:
		return &exitError{exitTrouble, err}
	}
}

// unplanned says that there is no plan yet. Unless its Transaction is kept, there never
// will be one.
func unplanned(e *unendedError, keep bool) error {
	text := fmt.Sprintf("transaction %s/%s has no plan after %s: %s", e.last.Namespace, e.last.Name, e.limit, sentence(e.last))
	if e.limit == 0 {
		text = "interrupted before there was a plan"
	}
	switch {
	case keep || unheard(e.last):
		text += "; " + byItself(e.last)
	case e.limit != 0:
		text += "; it is deleted, and a longer --timeout may give one"
	}
	return &exitError{exitTrouble, errors.New(text)}
}

func (s *session) plan(ctx context.Context, w *wishes, keep bool, limit time.Duration) error {
	d, err := w.transaction(ctx, s)
	if err != nil {
		return err
	}
	t, err := s.tried(ctx, d, keep, limit)
	if err != nil {
		return err
	}
	if program := os.Getenv(externalDiff); program != "" && w.planOut.text() && t.Status.Phase == api.PhasePlanned {
		return s.compare(ctx, program, d, t)
	}
	return s.showPlanOf(ctx, d, t, shownAs{out: w.planOut, from: w.inputFlags(), defaults: w.defaults})
}

// shownAs is how a plan is shown: as the Transaction that has it, or for people. from are the flags
// that name its manifests, where there are some.
type shownAs struct {
	out      output
	from     string
	defaults bool
}

// showPlanOf shows a plan that has ended, and returns the exit code.
func (s *session) showPlanOf(ctx context.Context, d draft, t *api.Transaction, as shownAs) error {
	if p := as.out.printer(); p != nil {
		return errors.Join(s.printWhole(p, t), verdict(s, t))
	}
	s.printPlanOf(ctx, s.Out, d, t, as.defaults)
	return s.judged(t, as.from)
}

// judged prints which rights are missing, and returns the exit code of a plan. from are the flags that
// name its manifests, where there are some.
func (s *session) judged(t *api.Transaction, from string) error {
	if len(missingRights(t)) > 0 {
		s.print("")
		printMissing(s.Out, t, from)
	}
	return verdict(s, t)
}

// planOfDraft shows the plan of a Transaction that another command than run would create.
func (s *session) planOfDraft(ctx context.Context, d draft, limit time.Duration, o output) error {
	tried := draft{Unstructured: d.DeepCopy()}
	if tried.GetGenerateName() != "" {
		tried.SetGenerateName(short(tried.GetGenerateName()) + "plan-")
	}
	t, err := s.tried(ctx, tried, false, limit)
	if err != nil {
		return err
	}
	return s.showPlanOf(ctx, d, t, shownAs{out: o})
}

// tried is a Transaction that has ended with a plan, or with what is wrong.
func (s *session) tried(ctx context.Context, u draft, keep bool, limit time.Duration) (*api.Transaction, error) {
	if err := unstructured.SetNestedField(u.Object, true, "spec", "dryRun"); err != nil {
		return nil, fmt.Errorf("set spec.dryRun: %w", err)
	}
	if name := u.GetName(); name != "" && (!keep || u.GetLabels()[setLabel] != "") {
		u.SetName("")
		u.SetGenerateName(short(name) + "-plan-")
	}
	made, err := s.create(ctx, u)
	if err != nil {
		return nil, err
	}
	if keep {
		s.say("The plan is in Transaction %s/%s.", made.Namespace, made.Name)
	} else {
		defer s.drop(context.WithoutCancel(ctx), made)
	}
	t, err := s.follow(ctx, made, limit, &silent{lines{out: s.ErrOut, patience: patience}})
	var unended *unendedError
	if errors.As(err, &unended) {
		return nil, unplanned(unended, keep)
	}
	return t, err
}

// silent is the view that shows nothing but the end, and that no janusd looks at the Transaction.
type silent struct{ lines }

func (s *silent) update(t *api.Transaction) { s.unlooked(t) }

// drop deletes a Transaction that is not wanted any more.
func (s *session) drop(ctx context.Context, t *api.Transaction) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := s.transactions(t.Namespace)
	if err == nil {
		err = client.Delete(ctx, t.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &t.UID}})
	}
	if err != nil {
		s.say("Transaction %s/%s could not be deleted: %v", t.Namespace, t.Name, err)
	}
}

// wide is how long two values may be together to stand in one line.
const wide = 100

// printFields prints what a change makes of fields.
func printFields(out io.Writer, indent string, fields []api.FieldChange) {
	for _, f := range fields {
		name := field(f.Field)
		switch {
		case f.Before != "" && f.After != "" && len(f.Before)+len(f.After) <= wide:
			write(out, "%s~ %s %s → %s\n", indent, name, f.Before, f.After)
		default:
			if f.Before != "" {
				write(out, "%s- %s %s\n", indent, name, f.Before)
			}
			if f.After != "" {
				write(out, "%s+ %s %s\n", indent, name, f.After)
			}
		}
	}
}

// field is a field as people write it, without the dot at its beginning.
func field(path string) string { return strings.TrimPrefix(path, ".") }

// allFields are several.
func allFields(paths []string) []string {
	out := make([]string, len(paths))
	for i, path := range paths {
		out[i] = field(path)
	}
	return out
}

// printRemarks prints the messages about an item besides its fields, and to whom it releases some.
func printRemarks(out io.Writer, item *api.Item, to string) {
	if item.Plan.More > 0 {
		write(out, "    and %s more\n", number(int(item.Plan.More), "field"))
	}
	if len(item.DeletedWith) > 0 {
		write(out, "    %s\n", deletedIf(item))
	}
	for _, taken := range item.Taken {
		write(out, "    %s: %s\n", takenFrom(taken.Manager, to), some(allFields(taken.Fields), taken.More))
	}
	for _, warning := range item.Warnings {
		write(out, "    warning: %s\n", warning)
	}
}

// takenFrom says from whom fields are taken, and for whom if they are released.
func takenFrom(manager, to string) string {
	if to == "" {
		return "taken from " + manager
	}
	return "released from " + manager + " to " + to
}

// releasedTo is to whom a change releases fields; empty if it releases none.
func releasedTo(t *api.Transaction, i int) string {
	if i >= len(t.Spec.Changes) || t.Spec.Changes[i].Release == nil {
		return ""
	}
	return cmp.Or(t.Spec.FieldManager, "nobody")
}

// deletedIf says when the target of an item is deleted in place of its change.
func deletedIf(item *api.Item) string {
	return "deleted if the when of " + strings.Join(item.DeletedWith, " or ") + " is false"
}

// verdict is the exit code of a plan, and what is wrong with it.
func verdict(s *session, t *api.Transaction) error {
	if t.Status.Phase != api.PhasePlanned {
		if _, reason, message := reasonOf(t); !onlyRights(t) {
			s.say("\n%s: %s", reason, message)
		}
		return &exitError{code: exitTrouble}
	}
	changes := slices.ContainsFunc(t.Status.Items, func(i api.Item) bool { return i.Plan != nil && i.Plan.Effect != api.EffectNone })
	if !changes {
		return nil
	}
	return &exitError{code: exitDiffers}
}
