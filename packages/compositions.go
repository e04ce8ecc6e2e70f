package packages

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/packages/change"
	"janus.io/janus/packages/installed"
)

// composed finds the composite resources of the compositions that go, unless their definition goes
// too: it may be of another package.
func (l *looking) composed(ctx context.Context, c change.Change) error {
	going := c.Going()
	candidates := map[installed.Object]bool{}
	for o := range going {
		candidates[o] = true
	}
	for _, s := range c.Steps {
		for _, o := range c.Left(s) {
			candidates[o] = true
		}
	}
	l.found.Composed = map[string]change.Kind{}
	for o := range candidates {
		if o.Kind != change.CompositionKind {
			continue
		}
		l.whole = map[installed.Object]*unstructured.Unstructured{}
		composition, err := l.get(ctx, o)
		if err != nil {
			return err
		}
		if composition == nil {
			continue
		}
		kind, err := l.composedBy(ctx, composition, going)
		if err != nil {
			kind.Unread = err.Error()
		}
		if kind.Count > 0 || kind.Unread != "" {
			l.found.Composed[o.Name] = kind
		}
	}
	return nil
}

// composedBy are the composite resources of one composition.
func (l *looking) composedBy(ctx context.Context, composition *unstructured.Unstructured, going map[installed.Object]bool) (change.Kind, error) {
	version, _, _ := unstructured.NestedString(composition.Object, "spec", "compositeTypeRef", "apiVersion")
	kind, _, _ := unstructured.NestedString(composition.Object, "spec", "compositeTypeRef", "kind")
	of := kube.FromAPIVersionAndKind(version, kind)
	definition, err := l.definitionOf(ctx, of.GroupKind())
	var out change.Kind
	if err != nil || definition == nil || going[change.Object(definition)] {
		return out, err
	}
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	err = l.each(ctx, of.GroupVersion().WithResource(plural), func(u *unstructured.Unstructured) error {
		if !composes(composition.GetName(), u) {
			return nil
		}
		if out.Count++; len(out.Names) < mostNames {
			out.Names = append(out.Names, fmt.Sprintf("%s %s", kind, named(u)))
		}
		return nil
	})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return out, err
}

// composes reports whether a composite resource has a composition. One of the older kind says so
// elsewhere.
func composes(composition string, u *unstructured.Unstructured) bool {
	for _, path := range [][]string{{"spec", "crossplane", "compositionRef", "name"}, {"spec", "compositionRef", "name"}} {
		if name, _, _ := unstructured.NestedString(u.Object, path...); name == composition {
			return true
		}
	}
	return false
}

// definitionOf is the definition of a kind of composite resources; nil if there is none.
func (l *looking) definitionOf(ctx context.Context, kind kube.GroupKind) (*unstructured.Unstructured, error) {
	if l.composites == nil {
		all := map[kube.GroupKind]*unstructured.Unstructured{}
		err := l.each(ctx, resources[kube.GroupKind{Group: "apiextensions.crossplane.io", Kind: change.CompositeKind}], func(u *unstructured.Unstructured) error {
			group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
			all[kube.GroupKind{Group: group, Kind: kind}] = u
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		l.composites = all
	}
	return l.composites[kind], nil
}
