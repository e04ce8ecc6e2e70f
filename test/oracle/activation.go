package oracle

import (
	"context"
	"slices"
	"strings"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/expression"
)

const definitions = "customresourcedefinitions.apiextensions.k8s.io"

// judgeActivation: what the status says of an activation was so at some time between the checkpoint
// before and the one that says so.
func (c *trial) judgeActivation(r *run, i int) {
	a := r.Spec.Changes[i].Activation
	if a == nil || r.Spec.UndoOf != nil {
		return
	}
	var was *state
	for _, s := range r.states {
		if i < len(s.items) {
			if holds, known := s.items[i].results["activation"]; known {
				if was != nil && s.by != nil && !c.activated(r, a, holds, was.Revision, s.Revision) {
					c.breach(Order, "%s: its activation (%s) is said to be %t (@%d), and was so at no time since @%d", r.named(i), a, holds, s.Revision, was.Revision)
				}
				return
			}
		}
		was = s
	}
}

// activated reports whether an activation had a value at some time between two revisions. What cannot be
// told counts as so.
func (c *trial) activated(r *run, a *api.Activation, want bool, from, to int64) bool {
	if len(c.Kinds) == 0 {
		return true
	}
	times := []int64{from + 1}
	for ref, o := range c.objects {
		for _, v := range o.versions {
			if ref.Resource == definitions && v.Revision > from && v.Revision < to {
				times = append(times, v.Revision+1)
			}
		}
	}
	return slices.ContainsFunc(times, func(at int64) bool {
		got, told := activates(a, c.kindsAt(r, at, want))
		return !told || got == want
	})
}

// activates evaluates an activation for the kinds that are served.
func activates(a *api.Activation, served []expression.Kind) (value, told bool) {
	if a.Expression == "" {
		return slices.ContainsFunc(served, func(k expression.Kind) bool {
			return strings.TrimPrefix(k.Group+"/"+k.Version, "/") == a.APIVersion && k.Kind == a.Kind
		}), true
	}
	e, err := expression.CompileKinds(a.Expression)
	if err != nil {
		return false, false
	}
	value, err = e.Evaluate(context.Background(), served)
	return value, err == nil
}

// kindsAt lists the kinds that were served before a revision: those that always are, and those of
// definitions. It takes a moment until the API server serves what a definition says. For an activation
// that is said not to hold, that is no excuse where the Transaction itself has written the definition: it
// has to wait.
func (c *trial) kindsAt(r *run, revision int64, established bool) []expression.Kind {
	out := slices.Clone(c.Kinds)
	for ref, o := range c.objects {
		if v := o.at(revision); ref.Resource == definitions && v != nil {
			accepted := conditionOf(v, "Established") == "True" || !established && slices.Contains(r.Items, ref)
			if accepted && conditionOf(v, "NamesAccepted") != "False" {
				out = append(out, definedBy(v)...)
			}
		}
	}
	return out
}

// definedBy lists the kinds that a definition defines, one for each version that is served.
func definedBy(v *version) (out []expression.Kind) {
	spec, _ := v.Object.Object["spec"].(map[string]any)
	for _, entry := range list(spec, "versions") {
		if of, _ := entry.(map[string]any); of["served"] == true {
			out = append(out, expression.Kind{
				Group: str(spec, "group"), Version: str(of, "name"), Kind: str(spec, "names", "kind"), Resource: str(spec, "names", "plural"),
				Namespaced: str(spec, "scope") == "Namespaced",
			})
		}
	}
	return out
}

// conditionOf is the status of a condition of an object; empty if it has none.
func conditionOf(v *version, name string) string {
	status, _ := v.Object.Object["status"].(map[string]any)
	for _, entry := range list(status, "conditions") {
		if c, _ := entry.(map[string]any); c["type"] == name {
			return str(c, "status")
		}
	}
	return ""
}
