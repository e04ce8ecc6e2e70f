package packages

import (
	"context"
	"fmt"

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
	{Group: "apiextensions.crossplane.io", Kind: change.CompositionKind}:            {Group: "apiextensions.crossplane.io", Version: "v1", Resource: "compositions"},
	{Group: "apiextensions.crossplane.io", Kind: "ManagedResourceActivationPolicy"}: {Group: "apiextensions.crossplane.io", Version: "v1alpha1", Resource: "managedresourceactivationpolicies"},
	{Group: "ops.crossplane.io", Kind: "Operation"}:                                 {Group: "ops.crossplane.io", Version: "v1alpha1", Resource: "operations"},
	{Group: "ops.crossplane.io", Kind: "CronOperation"}:                             {Group: "ops.crossplane.io", Version: "v1alpha1", Resource: "cronoperations"},
	{Group: "ops.crossplane.io", Kind: "WatchOperation"}:                            {Group: "ops.crossplane.io", Version: "v1alpha1", Resource: "watchoperations"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
}

// look reads what the cluster has of the objects of the packages of a change.
func (p Planner) look(ctx context.Context, c change.Change) (change.Found, error) {
	l := &looking{Planner: p, found: change.Found{Objects: map[installed.Object]*unstructured.Unstructured{}, Kinds: map[string]change.Kind{}, Made: map[installed.Object][]installed.Object{}}}
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
	l.runs(ctx, c)
	return l.found, l.composed(ctx, c)
}

type looking struct {
	Planner
	found change.Found
	// whole are those of the name that is looked at. What is kept of others is who owns them: the
	// definitions of a large provider take much memory.
	whole map[installed.Object]*unstructured.Unstructured
	// composites are the definitions of composite resources, once they are wanted.
	composites map[kube.GroupKind]*unstructured.Unstructured
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
	there, err := l.existing(ctx, s, o)
	if err == nil && o.Kind == change.CompositeKind {
		err = l.made(ctx, o, u, there == nil)
	}
	if err != nil || there == nil || !change.Defines(o) {
		return err
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
	kind := change.Kind{Differences: append(schema.Compare(before, after), change.ClaimsDiffer(there, content)...)}
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

// existing is the object in whose place one of a package comes; nil if there is none.
func (l *looking) existing(ctx context.Context, s change.Step, o installed.Object) (*unstructured.Unstructured, error) {
	l.whole = map[installed.Object]*unstructured.Unstructured{}
	there, err := l.get(ctx, o)
	if err != nil || s.Kind != image.Provider || !change.Defines(o) {
		return there, err
	}
	// Crossplane makes one of the other.
	definition, err := l.get(ctx, change.DefinitionObject(o.Name))
	if err != nil {
		return nil, err
	}
	managed, err := l.get(ctx, change.ManagedObject(o.Name))
	if err != nil {
		return nil, err
	}
	if definition == nil {
		return managed, nil
	}
	return definition, nil
}

// made looks for the definitions that Crossplane makes of one of composite resources. If that is
// new, Crossplane takes over those that there are, custom resources and all.
func (l *looking) made(ctx context.Context, o installed.Object, u image.Object, isNew bool) error {
	content, err := u.Decode()
	if err != nil {
		return err
	}
	var taken change.Kind
	for _, name := range []string{o.Name, change.Claims(content)} {
		if name == "" {
			continue
		}
		l.found.Made[o] = append(l.found.Made[o], change.DefinitionObject(name))
		live, err := l.live(ctx, name)
		if err != nil {
			return err
		}
		if live == nil || !isNew {
			continue
		}
		var kind change.Kind
		l.count(ctx, live, nil, &kind)
		with := kind.Resources()
		if kind.Unread != "" {
			with = "custom resources that cannot be read (" + kind.Unread + ")"
		}
		if kind.Count > 0 || kind.Unread != "" {
			taken.Differences = append(taken.Differences, schema.Difference{Breaking: true, Kind: true, Text: "the definition " + name + ", with " + with + ", gets another schema"})
		}
	}
	if taken.Differences != nil {
		l.found.Kinds[o.Name] = taken
	}
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

// live is the definition that the API server has; nil if it has none.
func (l *looking) live(ctx context.Context, name string) (*v1.CustomResourceDefinition, error) {
	u, err := l.get(ctx, change.DefinitionObject(name))
	if err != nil || u == nil {
		return nil, err
	}
	return change.Definition(u)
}
