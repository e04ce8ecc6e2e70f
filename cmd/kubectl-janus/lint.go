package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/expression"
)

func newLint(s *session) *cobra.Command {
	var from sources
	cmd := &cobra.Command{
		Use: "lint -f FILE", Short: "Check Transactions in files, without a cluster", Args: cobra.NoArgs,
		Long: `Check Transactions in files, without a cluster: against the definition that this version of Janus comes with, its
validation rules included, and the order of the changes, names and expressions. What only a cluster can tell is for
plan. Manifests that are no Transactions are left out.`,
		Example: `  kubectl janus lint -R -f deploy/`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !from.given() {
				return errors.New("what is to be checked? give files with -f, or a directory with -k")
			}
			manifests, err := from.read(cmd.Context(), s, "")
			if err != nil {
				return err
			}
			return s.lint(cmd.Context(), manifests)
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&from.Filenames, "filename", "f", nil, "files, directories, URLs or OCI artifacts (oci://HOST/REPOSITORY:TAG) with manifests; - is stdin")
	f.BoolVarP(&from.Recursive, "recursive", "R", false, "go into the directories of a directory too")
	f.StringVarP(&from.Kustomize, "kustomize", "k", "", "a directory with a kustomization.yaml")
	return cmd
}

func (s *session) lint(ctx context.Context, manifests []manifest) error {
	r, err := newRules()
	if err != nil {
		return err
	}
	checked, wrong := 0, 0
	for _, m := range manifests {
		u := m.Unstructured
		if u.GroupVersionKind().GroupKind() != api.Kind.GroupKind() {
			continue
		}
		checked++
		problems := lint(ctx, r, u)
		for _, problem := range problems {
			s.print("%s: %s", cmp.Or(u.GetName(), u.GetGenerateName()), several(problem))
		}
		if len(problems) > 0 {
			wrong++
		}
	}
	switch {
	case checked == 0:
		return errors.New("there is no Transaction among the manifests")
	case wrong > 0:
		return fmt.Errorf("%d of %d Transactions are wrong", wrong, checked)
	default:
		s.print("%d checked, nothing wrong", checked)
		return nil
	}
}

// lint returns all that is wrong with a Transaction, as far as it can be told without a
// cluster.
func lint(ctx context.Context, r *rules, u *unstructured.Unstructured) []string {
	if u.GroupVersionKind() != api.Kind {
		return []string{fmt.Sprintf("apiVersion is %s, and %s is known", u.GetAPIVersion(), api.GroupVersion)}
	}
	if problems := r.check(ctx, u); len(problems) > 0 {
		return problems
	}
	t, err := typed(u)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	if err := tooLarge(u); err != nil {
		out = append(out, err.Error())
	}
	names := map[string]bool{}
	for i, c := range t.Spec.Changes {
		names[plan.ChangeName(i, c)] = true
	}
	for i, c := range t.Spec.Changes {
		for _, problem := range expressions(c, names) {
			out = append(out, fmt.Sprintf("spec.changes[%d].%s", i, problem))
		}
	}
	if _, err := plan.Order(t); err != nil {
		out = append(out, err.Error())
	}
	return out
}

// expressions returns what is wrong with those of a change.
func expressions(c api.Change, names map[string]bool) []string {
	var out []string
	objectOnly := false
	check := func(field, text string, compile func(string) (*expression.Expression, error)) {
		if text == "" {
			return
		}
		e, err := compile(text)
		if err != nil {
			out = append(out, field+": "+err.Error())
			return
		}
		for _, name := range e.Names() {
			switch {
			case objectOnly:
				out = append(out, fmt.Sprintf("%s: it asks for objects.%s, and may ask for object alone", field, name))
			case !names[name]:
				out = append(out, fmt.Sprintf("%s: it asks for objects.%s, and no change has that name", field, name))
			}
		}
	}
	if c.Activation != nil && c.Activation.Expression != "" {
		if _, err := expression.CompileKinds(c.Activation.Expression); err != nil {
			out = append(out, "activation.expression: "+err.Error())
		}
	}
	check("when", c.When, expression.Compile)
	if c.ReadyWhen != nil {
		check("readyWhen.expression", c.ReadyWhen.Expression, expression.Compile)
	}
	if c.GoneWhen != nil {
		check("goneWhen.expression", c.GoneWhen.Expression, expression.Compile)
	}
	if c.FailWhen != nil {
		check("failWhen.expression", c.FailWhen.Expression, expression.Compile)
		check("failWhen.messageExpression", c.FailWhen.MessageExpression, expression.CompileText)
	}
	if objectOnly = true; c.Rollback != nil {
		check("rollback.readyWhen.expression", c.Rollback.ReadyWhen.Expression, expression.Compile)
	}
	return out
}
