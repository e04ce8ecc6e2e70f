package wiring

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/expression"
	"janus.io/janus/internal/target"
)

// activated reports whether an activation holds for the kinds that the cluster serves now; kinds gives
// all of them. What is served is no secret: it is read as janusd, as it is for every other question
// about kinds.
func activated(ctx context.Context, resolver *target.Resolver, kinds func() ([]target.ServedKind, error), of api.Target, a *api.Activation) (bool, error) {
	if a.Expression == "" {
		return resolver.Serves(a.APIVersion, a.Kind)
	}
	e, err := expression.CompileKinds(a.Expression)
	if err != nil {
		return false, malformedActivation(of, err)
	}
	found, err := kinds()
	if err != nil {
		return false, err
	}
	served := make([]expression.Kind, len(found))
	for i, k := range found {
		served[i] = expression.Kind{Group: k.GVK.Group, Version: k.GVK.Version, Kind: k.GVK.Kind, Resource: k.Resource, Namespaced: k.Namespaced}
	}
	holds, err := e.Evaluate(ctx, served)
	if err != nil {
		return false, errclass.New(errclass.Terminal, errclass.Invalid, "evaluate activation of", of.String(), "%s: %w", a.Expression, err)
	}
	return holds, nil
}

func malformedActivation(of api.Target, err error) error {
	return errclass.New(errclass.Terminal, errclass.Invalid, "compile activation of", of.String(), "%w", err).
		WithHint("kinds is the list of what the cluster serves, with the fields group, version, kind, resource and namespaced")
}

// Activates decides the activation of a change whose turn has come. What earlier changes have made of
// definitions and APIs counts once the API server says that it serves that.
func (g *Gates) Activates(ctx context.Context, t *api.Transaction, i int) (bool, error) {
	seen, err := g.see(ctx, t, i)
	if err != nil {
		return false, err
	}
	for _, j := range plan.Deciders(t, i) {
		if item := &t.Status.Items[j]; !item.Changes() || item.Resource == "" {
			continue
		}
		live, err := seen.read(ctx, j)
		if err != nil {
			return false, err
		}
		if err := seen.served(j, live); err != nil {
			return false, err
		}
	}
	g.resolver.Refresh()
	return activated(ctx, g.resolver, g.resolver.Kinds, t.Status.Items[i].Target, t.Spec.Changes[i].Activation)
}

// served makes sure that the API server serves what a definition or an APIService says, and nothing of
// one that is gone. It takes a moment until it does.
func (s *sight) served(j int, live *unstructured.Unstructured) error {
	ref, err := s.refOf(j)
	if err != nil {
		return err
	}
	settled, what := false, ""
	if ref.GVK.GroupKind() == target.CRDKind {
		settled, what, err = s.definitionServed(ref, live)
	} else {
		settled, what, err = s.apiServed(ref, live)
	}
	if err != nil || settled {
		return err
	}
	later := errclass.New(errclass.Retryable, errclass.NotInEffect, "wait for", ref.String(),
		"%s; until then the activation of item %s is not decided", what, s.txn.Status.Items[s.item].Name)
	later.RetryAfter = patiencePause
	return later
}

// definitionServed compares the versions in which a kind is served with those of its definition. One whose
// names are taken by another serves nothing.
func (s *sight) definitionServed(ref target.Ref, live *unstructured.Unstructured) (settled bool, what string, err error) {
	plural, group := target.CutDefinition(ref.Name)
	var want []string
	switch {
	case live == nil, conditionOf(live, "NamesAccepted") == "False":
	case conditionOf(live, "Established") != "True":
		return false, "it is not Established yet", nil
	default:
		for _, kind := range target.PlannedKinds(live.Object) {
			want = append(want, kind.GVK.Version)
		}
		slices.Sort(want)
	}
	found, err := s.resolver.VersionsOf(schema.GroupResource{Group: group, Resource: plural})
	return slices.Equal(found, want), "the API server does not serve what it says yet", err
}

// apiServed tells whether the API of an APIService is served if it is there, and no more if it is not.
func (s *sight) apiServed(ref target.Ref, live *unstructured.Unstructured) (settled bool, what string, err error) {
	if live != nil && conditionOf(live, "Available") != "True" {
		return false, "it is not Available yet", nil
	}
	version, group := target.CutDefinition(ref.Name)
	answers, err := s.resolver.Answers(schema.GroupVersion{Group: group, Version: version})
	return answers == (live != nil), "the API server does not serve what it says yet", err
}

// conditionOf is the status of a condition; empty if there is none.
func conditionOf(u *unstructured.Unstructured, name string) string {
	all, _ := valueAt(u.Object, "status", "conditions").([]any)
	for _, entry := range all {
		if c := asMap(entry); c["type"] == name {
			status, _ := c["status"].(string)
			return status
		}
	}
	return ""
}
