package main

import (
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
	var keep bool
	most := limit(2 * time.Minute)
	cmd := &cobra.Command{
		Aliases: []string{"diff"},
		Use:     "plan {-f FILE | -k DIRECTORY | --delete KIND/NAME} --service-account NAME",
		Short:   "Show what run would change, and what is wrong with it",
		Long: `Show what run would change, and what is wrong with it. janusd tries every change without effect, as the ServiceAccount
that would make it, in a Transaction with dryRun that is deleted afterwards. Values of Secrets and of other confidential
content are not shown. Contents are stored as run does it, and deleted with the Transaction.

The environment variable KUBECTL_EXTERNAL_DIFF names a program that is to show it, as for kubectl diff: it is started
with two directories, of what is there and what would be, and then its options, which may have letters, digits, dashes
and equals signs. They have a file for each object that would change, with those fields that would, confidential values
masked. The exit code is that of the program, if it is 0 or 1, and 1 in place of 0 where something cannot be told yet.

Exit codes: 0 nothing would change, 1 something would, 2 it could not be made or not be told, or not in time.`,
		Example: `  kubectl janus plan -f app.yaml --service-account deployer
  KUBECTL_EXTERNAL_DIFF="colordiff -u -N" kubectl janus plan -f app.yaml --service-account deployer`,
		Args: func(cmd *cobra.Command, args []string) error { return trouble(cobra.NoArgs(cmd, args)) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := s.plan(cmd.Context(), &w, keep, time.Duration(most))
			return trouble(err)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return trouble(err) })
	w.addTo(cmd)
	cmd.Flags().BoolVar(&w.ready.waits, "wait", false, "plan what run does with --wait, which also waits until what it makes is ready")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the Transaction with the plan")
	cmd.Flags().Var(&most, "timeout", "how long to wait for the plan")
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
	text := fmt.Sprintf("there is no plan after %s: %s", e.limit, sentence(e.last))
	if e.limit == 0 {
		text = "interrupted before there was a plan"
	}
	if keep {
		text += fmt.Sprintf("; transaction %s/%s continues by itself", e.last.Namespace, e.last.Name)
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
	if program := os.Getenv(externalDiff); program != "" && t.Status.Phase == api.PhasePlanned {
		return s.compare(ctx, program, d, t)
	}
	printPlan(s.Out, t)
	if len(missingRights(t)) > 0 {
		s.print("")
		printMissing(s.Out, t, w.inputFlags())
	}
	return verdict(s, t)
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
	t, err := s.follow(ctx, made, limit, silent{})
	var unended *unendedError
	if errors.As(err, &unended) {
		return nil, unplanned(unended, keep)
	}
	return t, err
}

// silent is the view that shows nothing but the end.
type silent struct{}

func (silent) update(*api.Transaction) {}
func (silent) done()                   {}

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

func printDifferences(out io.Writer, item *api.Item) {
	if item.Reason != "" && !lacksRight(item) {
		write(out, "\n%s: %s: %s\n", item.Name, item.Reason, item.Message)
	}
	p := item.Plan
	if p == nil || len(p.Fields) == 0 && p.Deferred == "" && len(item.Taken)+len(item.Warnings)+len(item.DeletedWith) == 0 {
		return
	}
	write(out, "\n%s %s\n", item.Name, item.Target.String())
	if p.Deferred != "" {
		write(out, "    cannot be told yet: %s\n", p.Deferred)
	}
	printFields(out, "  ", p.Fields)
	printRemarks(out, item)
}

// printFields prints what a change makes of fields.
func printFields(out io.Writer, indent string, fields []api.FieldChange) {
	for _, f := range fields {
		if f.Before != "" {
			write(out, "%s- %s: %s\n", indent, f.Field, f.Before)
		}
		if f.After != "" {
			write(out, "%s+ %s: %s\n", indent, f.Field, f.After)
		}
	}
}

// printRemarks prints the messages about an item besides its fields.
func printRemarks(out io.Writer, item *api.Item) {
	if item.Plan.More > 0 {
		write(out, "    and %d fields more\n", item.Plan.More)
	}
	if len(item.DeletedWith) > 0 {
		write(out, "    %s\n", deletedIf(item))
	}
	for _, taken := range item.Taken {
		write(out, "    taken from %s: %s\n", taken.Manager, some(taken.Fields, taken.More))
	}
	for _, warning := range item.Warnings {
		write(out, "    warning: %s\n", warning)
	}
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
