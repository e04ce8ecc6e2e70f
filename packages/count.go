package packages

import (
	"cmp"
	"context"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/packages/change"
	"janus.io/janus/packages/installed"
	"janus.io/janus/packages/schema"
)

func judgesOf(definition *v1.CustomResourceDefinition) map[string]*schema.Judge {
	out := map[string]*schema.Judge{}
	for _, v := range definition.Spec.Versions {
		// A version without a schema harms nothing, and one whose schema is none is refused by
		// the API server.
		if j, err := schema.NewJudge(definition, v.Name); err == nil {
			out[v.Name] = j
		}
	}
	return out
}

// mostNames is how many custom resources are named, of all that are counted.
const mostNames = 5

// count counts the custom resources of a kind, in the version that is stored, and judges what
// happens to them.
func (l *looking) count(ctx context.Context, definition *v1.CustomResourceDefinition, judges map[string]*schema.Judge, kind *change.Kind) {
	version := ""
	for _, v := range definition.Spec.Versions {
		if v.Served && (version == "" || v.Storage) {
			version = v.Name
		}
	}
	if version == "" {
		kind.Unread = "none of its versions is served"
		return
	}
	judge := judges[version]
	resource := kube.GroupVersionResource{Group: definition.Spec.Group, Version: version, Resource: definition.Spec.Names.Plural}
	err := l.each(ctx, resource, func(u *unstructured.Unstructured) error {
		name := named(u)
		if kind.Count++; len(kind.Names) < mostNames {
			kind.Names = append(kind.Names, name)
		}
		if judge == nil {
			return nil
		}
		if effect := judge.Effect(ctx, u); !effect.Harmless() {
			if kind.HarmedCount++; len(kind.Harmed) < mostNames {
				kind.Harmed = append(kind.Harmed, change.Harm{Name: name, Effect: effect})
			}
		}
		return nil
	})
	switch {
	case apierrors.IsNotFound(err) && !established(definition): // Nothing can have been stored.
	case err != nil:
		kind.Unread = err.Error()
	}
}

// claims counts those of a kind of composite resources: they are a kind of their own, which
// Crossplane deletes with the other. A claim that is paused has no composite resource.
func (l *looking) claims(ctx context.Context, o installed.Object, kind *change.Kind) error {
	if o.Kind != change.CompositeKind {
		return nil
	}
	composite, err := l.get(ctx, o)
	if err != nil || composite == nil {
		return err
	}
	name := change.Claims(composite)
	if name == "" {
		return nil
	}
	live, err := l.live(ctx, name)
	if err != nil || live == nil {
		return err
	}
	var claims change.Kind
	l.count(ctx, live, nil, &claims)
	for _, name := range claims.Names {
		kind.Names = append(kind.Names, live.Spec.Names.Kind+" "+name)
	}
	kind.Count += claims.Count
	kind.Unread = cmp.Or(kind.Unread, claims.Unread)
	return nil
}

// named is the name of a custom resource, with its namespace if it has one.
func named(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetName()
	}
	return u.GetNamespace() + "/" + u.GetName()
}

// established reports whether a definition has been served since it was made.
func established(definition *v1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(definition.Status.Conditions, func(c v1.CustomResourceDefinitionCondition) bool {
		return c.Type == v1.Established && c.Status == v1.ConditionTrue
	})
}
