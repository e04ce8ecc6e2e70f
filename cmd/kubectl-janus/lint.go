package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/expression"
)

func newLint(s *session) *cobra.Command {
	var from sources
	var out output
	cmd := &cobra.Command{
		Use: "lint -f FILE", Short: "Check Transactions in files, without a cluster", Args: cobra.NoArgs,
		Long: `Check Transactions in files, without a cluster: against the definition that this version of Janus comes with, its
validation rules included, and the order of the changes, names and expressions. What only a cluster can tell is for
plan. Manifests that are no Transactions are left out, and so are files of a directory that hold none.`,
		Example: `  kubectl janus lint -R -f deploy/`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !from.given() {
				return errors.New("no Transactions to check are given: name files with -f, or a directory with -k")
			}
			manifests, unread, err := from.transactions(cmd.Context(), s)
			if err != nil {
				return err
			}
			return s.lint(cmd.Context(), manifests, unread, out)
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&from.Filenames, "filename", "f", nil, "files, directories, URLs or OCI artifacts (oci://HOST/REPOSITORY:TAG) with manifests; - is stdin")
	f.BoolVarP(&from.Recursive, "recursive", "R", false, "go into the directories of a directory too")
	f.StringVarP(&from.Kustomize, "kustomize", "k", "", "a directory with a kustomization.yaml")
	out.addTo(cmd)
	return cmd
}

// mayHold finds what may be a Transaction in a file.
var mayHold = regexp.MustCompile(`apiVersion["']?\s*:\s*["']?` + regexp.QuoteMeta(api.GroupVersion.Group) + `/`)

// transactions reads the manifests. Directories may hold other YAML, such as values and templates
// of charts: what has no Transaction is not looked at there. It returns, by file, why those cannot be
// read that may have one.
func (f sources) transactions(ctx context.Context, s *session) (list []manifest, unread []error, err error) {
	rest := f
	rest.Filenames = nil
	for _, name := range f.Filenames {
		if info, err := os.Stat(name); err != nil || !info.IsDir() {
			rest.Filenames = append(rest.Filenames, name)
			continue
		}
		for _, file := range f.files(name) {
			text, err := os.ReadFile(file)
			if err == nil && !mayHold.Match(text) {
				if err := checkText(file, text); err != nil {
					unread = append(unread, err)
				}
				continue
			}
			one := sources{}
			one.Filenames = []string{file}
			found, err := one.read(ctx, s, "")
			if err != nil {
				unread = append(unread, err)
			}
			list = append(list, found...)
		}
	}
	if rest.given() {
		found, err := rest.read(ctx, s, "")
		if err != nil {
			return nil, nil, err
		}
		list = append(list, found...)
	}
	return list, unread, nil
}

// linted is what lint has found.
type linted struct {
	Checked  int       `json:"checked"`
	Wrong    int       `json:"wrong"`
	Problems []problem `json:"problems"`
	Unread   []string  `json:"unread"`
}

// problem is one thing that is wrong with a Transaction.
type problem struct {
	Transaction string `json:"transaction"`
	Source      string `json:"source"`
	Text        string `json:"text"`
}

func (s *session) lint(ctx context.Context, manifests []manifest, unread []error, out output) error {
	r, err := newRules()
	if err != nil {
		return err
	}
	found := linted{Problems: []problem{}, Unread: []string{}}
	for _, err := range unread {
		s.say("%v", err)
		found.Unread = append(found.Unread, err.Error())
	}
	for _, m := range manifests {
		u := m.Unstructured
		if u.GroupVersionKind().GroupKind() != api.Kind.GroupKind() {
			continue
		}
		found.Checked++
		problems := lint(ctx, r, u)
		for _, text := range problems {
			name := cmp.Or(u.GetName(), u.GetGenerateName())
			found.Problems = append(found.Problems, problem{name, m.source, text})
			if out.text() {
				s.print("%s: %s", name, several(text))
			}
		}
		if len(problems) > 0 {
			found.Wrong++
		}
	}
	if !out.text() {
		if err := s.printData(out, found); err != nil {
			return err
		}
	}
	checked, wrong := found.Checked, found.Wrong
	switch {
	case len(unread) > 0:
		return fmt.Errorf("%d files cannot be read, and %d of %d Transactions in the others are wrong", len(unread), wrong, checked)
	case checked == 0:
		return errors.New("there is no Transaction among the manifests: kubectl janus plan checks other manifests")
	case wrong > 0:
		return fmt.Errorf("%d of %d Transactions are wrong", wrong, checked)
	case out.text():
		s.print("%d checked, nothing wrong", checked)
	}
	return nil
}

// lint returns all that is wrong with a Transaction, as far as it can be told without a
// cluster.
func lint(ctx context.Context, r *rules, u *unstructured.Unstructured) []string {
	if u.GroupVersionKind() != api.Kind {
		return []string{fmt.Sprintf("apiVersion is %s, and %s and %s are known", u.GetAPIVersion(), api.GroupVersion, api.BetaVersion)}
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
