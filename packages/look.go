package packages

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/packages/change"
	"janus.io/janus/packages/image"
	"janus.io/janus/packages/installed"
	"janus.io/janus/packages/schema"
)

// resources are those of the objects of packages.
var resources = map[kube.GroupKind]kube.GroupVersionResource{
	{Group: "apiextensions.k8s.io", Kind: change.DefinitionKind}:                    {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	{Group: "apiextensions.crossplane.io", Kind: change.ManagedKind}:                {Group: "apiextensions.crossplane.io", Version: "v1alpha1", Resource: "managedresourcedefinitions"},
	{Group: "apiextensions.crossplane.io", Kind: change.CompositeKind}:              {Group: "apiextensions.crossplane.io", Version: "v1", Resource: "compositeresourcedefinitions"},
	{Group: "apiextensions.crossplane.io", Kind: "Composition"}:                     {Group: "apiextensions.crossplane.io", Version: "v1", Resource: "compositions"},
	{Group: "apiextensions.crossplane.io", Kind: "ManagedResourceActivationPolicy"}: {Group: "apiextensions.crossplane.io", Version: "v1alpha1", Resource: "managedresourceactivationpolicies"},
	{Group: "ops.crossplane.io", Kind: "Operation"}:                                 {Group: "ops.crossplane.io", Version: "v1alpha1", Resource: "operations"},
	{Group: "ops.crossplane.io", Kind: "CronOperation"}:                             {Group: "ops.crossplane.io", Version: "v1alpha1", Resource: "cronoperations"},
	{Group: "ops.crossplane.io", Kind: "WatchOperation"}:                            {Group: "ops.crossplane.io", Version: "v1alpha1", Resource: "watchoperations"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
}

// look reads what the cluster has of the objects of the packages of a change.
func (p Planner) look(ctx context.Context, c change.Change) (change.Found, error) {
	l := &looking{Planner: p, found: change.Found{Objects: map[installed.Object]*unstructured.Unstructured{}, Kinds: map[string]change.Kind{}}}
	for _, s := range c.Steps {
		if s.Content != nil {
			for _, u := range s.Content.Objects {
				if err := l.brought(ctx, s, u); err != nil {
					return l.found, err
				}
			}
		}
		if s.Existing == nil {
			continue
		}
		for _, r := range c.State.Of(*s.Existing) {
			for _, o := range r.Objects {
				if err := l.owned(ctx, o); err != nil {
					return l.found, err
				}
			}
		}
	}
	return l.found, nil
}

type looking struct {
	Planner
	found change.Found
	// whole are those of the name that is looked at. What is kept of others is who owns them: the
	// definitions of a large provider take much memory.
	whole map[installed.Object]*unstructured.Unstructured
}

// get reads an object; nil if there is none, or no such kind.
func (l *looking) get(ctx context.Context, o installed.Object) (*unstructured.Unstructured, error) {
	if there, ok := l.whole[o]; ok {
		return there, nil
	}
	if there, ok := l.found.Objects[o]; ok && there == nil {
		return nil, nil
	}
	resource, ok := resources[kube.GroupKind{Group: o.Group, Kind: o.Kind}]
	if !ok {
		return nil, nil
	}
	there, err := l.Cluster.Resource(resource).Get(ctx, o.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		there = nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", o, err)
	}
	l.whole[o] = there
	l.found.Objects[o] = owners(there)
	return there, nil
}

// owners is what an object says of itself and of who owns it.
func owners(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(u.GroupVersionKind())
	out.SetName(u.GetName())
	out.SetUID(u.GetUID())
	out.SetOwnerReferences(u.GetOwnerReferences())
	out.SetDeletionTimestamp(u.GetDeletionTimestamp())
	return out
}

// brought looks for an object that a package brings.
func (l *looking) brought(ctx context.Context, s change.Step, u image.Object) error {
	o := change.Brought(u)
	l.whole = map[installed.Object]*unstructured.Unstructured{}
	there, err := l.get(ctx, o)
	if err != nil || !change.Defines(o) {
		return err
	}
	if s.Kind == image.Provider {
		// Crossplane makes one of the other.
		definition, err := l.get(ctx, change.DefinitionObject(o.Name))
		if err != nil {
			return err
		}
		managed, err := l.get(ctx, change.ManagedObject(o.Name))
		if err != nil {
			return err
		}
		if there = definition; there == nil {
			there = managed
		}
	}
	if there == nil {
		return nil
	}
	before, err := change.Definition(there)
	if err != nil {
		return err
	}
	content, err := u.Decode()
	if err != nil {
		return err
	}
	after, err := change.Definition(content)
	if err != nil {
		return err
	}
	kind := change.Kind{Differences: schema.Compare(before, after)}
	live, err := l.live(ctx, o.Name)
	if err != nil {
		return err
	}
	if live != nil {
		var judges map[string]*schema.Judge
		if o.Kind != change.CompositeKind {
			judges = judgesOf(after)
		}
		l.count(ctx, live, judges, &kind)
		if err := l.claims(ctx, o, &kind); err != nil {
			return err
		}
		if o.Kind == change.CompositeKind && kind.Count > 0 && kind.Unread == "" {
			kind.Unread = "only a part of their schema is in the package"
		}
	}
	l.found.Kinds[o.Name] = kind
	return nil
}

// owned looks for an object that a package has.
func (l *looking) owned(ctx context.Context, o installed.Object) error {
	l.whole = map[installed.Object]*unstructured.Unstructured{}
	if _, known := l.found.Objects[o]; !known {
		if _, err := l.get(ctx, o); err != nil {
			return err
		}
	}
	if _, known := l.found.Kinds[o.Name]; known || !change.Defines(o) {
		return nil
	}
	live, err := l.live(ctx, o.Name)
	if err != nil || live == nil {
		return err
	}
	var kind change.Kind
	l.count(ctx, live, nil, &kind)
	if err := l.claims(ctx, o, &kind); err != nil {
		return err
	}
	l.found.Kinds[o.Name] = kind
	return nil
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
	plural, _, _ := unstructured.NestedString(composite.Object, "spec", "claimNames", "plural")
	group, _, _ := unstructured.NestedString(composite.Object, "spec", "group")
	if plural == "" {
		return nil
	}
	live, err := l.live(ctx, plural+"."+group)
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

// live is the definition that the API server has; nil if it has none.
func (l *looking) live(ctx context.Context, name string) (*v1.CustomResourceDefinition, error) {
	u, err := l.get(ctx, change.DefinitionObject(name))
	if err != nil || u == nil {
		return nil, err
	}
	return change.Definition(u)
}

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
		name := u.GetName()
		if u.GetNamespace() != "" {
			name = u.GetNamespace() + "/" + name
		}
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

// established reports whether a definition has been served since it was made.
func established(definition *v1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(definition.Status.Conditions, func(c v1.CustomResourceDefinitionCondition) bool {
		return c.Type == v1.Established && c.Status == v1.ConditionTrue
	})
}
