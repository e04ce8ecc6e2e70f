package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate/kinds"
)

// surveyor finds out what has to be done to bring manifests into effect.
type surveyor struct {
	mapper    meta.RESTMapper
	client    dynamic.Interface
	discovery discovery.DiscoveryInterface
	namespace string
	planned   map[schema.GroupVersionKind]target.PlannedKind // kinds that an earlier manifest defines
	made      map[api.Target]bool                            // identities of objects that an earlier manifest makes
	missing   map[string]bool                                // whether a Namespace is, of those that were looked for
	set       *applySet                                      // the one that the manifests are; nil for none
	found     found                                          // what was looked for and exists
	looked    map[api.Target]bool                            // identities of what was looked for
	warnings  []string                                       // what of the manifests another tool would treat otherwise
}

func (s *session) surveyor(namespace string) (*surveyor, error) {
	mapper, err := s.flags.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("ask the cluster for its kinds: %w", err)
	}
	client, err := s.dynamic()
	if err != nil {
		return nil, err
	}
	resources, err := s.flags.ToDiscoveryClient()
	if err != nil {
		return nil, fmt.Errorf("ask the cluster for its resources: %w", err)
	}
	return &surveyor{
		mapper: mapper, client: client, discovery: resources, namespace: namespace,
		planned: map[schema.GroupVersionKind]target.PlannedKind{}, made: map[api.Target]bool{}, missing: map[string]bool{},
		found: found{}, looked: map[api.Target]bool{},
	}, nil
}

// inOrder sorts manifests as an experienced user would write them: what others need comes
// first. Manifests of the same rank stay in the order that was given.
func inOrder(manifests []manifest) []manifest {
	out := slices.Clone(manifests)
	slices.SortStableFunc(out, func(a, b manifest) int {
		return kinds.InstallRank(a.GroupVersionKind().GroupKind()) - kinds.InstallRank(b.GroupVersionKind().GroupKind())
	})
	return out
}

// changes are the changes that bring manifests into effect. All that is missing is told at
// once.
func (v *surveyor) changes(ctx context.Context, manifests []manifest) ([]api.Change, error) {
	var out []api.Change
	var lacks []string
	for _, m := range manifests {
		change, err := v.change(ctx, m)
		var lacking *lackError
		switch {
		case errors.As(err, &lacking):
			lacks = append(lacks, lacking.text)
		case err != nil:
			return nil, err
		default:
			out = append(out, change)
		}
	}
	switch len(lacks) {
	case 0:
		return out, nil
	case 1:
		return nil, errors.New(lacks[0])
	}
	for i, lack := range lacks {
		lacks[i] = fmt.Sprintf("(%d) %s", i+1, lack)
	}
	return nil, fmt.Errorf("%d manifests lack something: %s", len(lacks), strings.Join(lacks, "; "))
}

// lackError says that a manifest needs something that is neither in the cluster nor in the
// manifests.
type lackError struct{ text string }

func (e *lackError) Error() string { return e.text }

// change is the change that brings a manifest into effect: what exists is patched, what
// does not is created.
func (v *surveyor) change(ctx context.Context, m manifest) (api.Change, error) {
	t := api.Target{APIVersion: m.GetAPIVersion(), Kind: m.GetKind(), Name: m.GetName(), Namespace: m.GetNamespace()}
	kind := api.Patch
	live, exists, err := v.find(ctx, m.GroupVersionKind(), &t)
	var lacking *lackError
	switch {
	case errors.As(err, &lacking):
		return api.Change{}, &lackError{fmt.Sprintf("%s: %s", m.describe(t.Namespace), lacking.text)}
	case err != nil:
		return api.Change{}, err
	case !exists:
		kind = api.Create
		if err := v.hasNamespace(ctx, m, t.Namespace); err != nil {
			return api.Change{}, err
		}
	}
	if err := v.set.refuse(live); err != nil {
		return api.Change{}, err
	}
	v.remember(m.Unstructured, live, t.Namespace)
	v.warnings = append(v.warnings, warningsOf(m.Unstructured, live, t)...)
	content, err := contentFor(m.Unstructured, t.Namespace)
	if err != nil {
		return api.Change{}, fmt.Errorf("encode %s %s: %w", t.Kind, t.Name, err)
	}
	return api.Change{Target: t, Type: kind, Content: &runtime.RawExtension{Raw: content}}, nil
}

// contentFor is the content of a change in the namespace of its target. kubectl takes a
// namespace of what has none, which kustomize writes, so that is left out.
func contentFor(u *unstructured.Unstructured, namespace string) ([]byte, error) {
	content := bare(u)
	if namespace == "" {
		content.SetNamespace("")
	}
	return content.MarshalJSON()
}

// find looks for a target, and completes its namespace. What an earlier manifest makes will
// exist; it is not there to be given.
func (v *surveyor) find(ctx context.Context, gvk schema.GroupVersionKind, t *api.Target) (live *unstructured.Unstructured, exists bool, err error) {
	mapping, err := v.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	planned, isPlanned := v.planned[gvk]
	switch {
	case meta.IsNoMatchError(err) && isPlanned:
		v.place(t, planned.Namespaced)
		// The definition may be there, and get a version: by those that it has, its objects
		// can be looked for.
		if mapping, err = v.mapper.RESTMapping(gvk.GroupKind()); meta.IsNoMatchError(err) {
			return nil, v.made[t.Identity()], nil
		}
	case meta.IsNoMatchError(err):
		return nil, false, &lackError{fmt.Sprintf("the cluster serves no kind %s in %s, and no CustomResourceDefinition of the manifests defines one", t.Kind, t.APIVersion)}
	}
	if err != nil {
		return nil, false, fmt.Errorf("find the kind of %s %s: %w", t.Kind, t.Name, err)
	}
	v.place(t, mapping.Scope.Name() != meta.RESTScopeNameRoot)
	switch {
	case v.made[t.Identity()]:
		return nil, true, nil
	case v.made[namespaceNamed(t.Namespace)]:
		return nil, false, nil
	}
	live, err = v.client.Resource(mapping.Resource).Namespace(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
	if err == nil || apierrors.IsNotFound(err) {
		v.looked[t.Identity()] = true
	}
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w; that is looked up with your own rights, so ask for the verb get on %s", err, mapping.Resource.GroupResource())
	}
	if err != nil {
		return nil, false, fmt.Errorf("check whether %s exists, to patch or create it: %w", t, err)
	}
	v.found[t.Identity()] = live
	return live, true, nil
}

// namespaceNamed is the identity of a Namespace.
func namespaceNamed(name string) api.Target {
	return api.Target{Kind: target.NamespaceKind.Kind, Name: name}
}

// hasNamespace says so if the namespace of what is to be created does not exist and is not
// made before. Who may not see Namespaces leaves that to janusd.
func (v *surveyor) hasNamespace(ctx context.Context, m manifest, namespace string) error {
	if namespace == "" || namespace == v.namespace || v.made[namespaceNamed(namespace)] {
		return nil
	}
	missing, known := v.missing[namespace]
	if !known {
		_, err := v.client.Resource(namespaces).Get(ctx, namespace, metav1.GetOptions{})
		missing = apierrors.IsNotFound(err)
		v.missing[namespace] = missing
	}
	if !missing {
		return nil
	}
	return &lackError{fmt.Sprintf("%s: there is no Namespace %s, and none of the manifests makes it", m.describe(namespace), namespace)}
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// place completes the namespace of a target.
func (v *surveyor) place(t *api.Target, namespaced bool) {
	switch {
	case !namespaced:
		t.Namespace = ""
	case t.Namespace == "":
		t.Namespace = v.namespace
	}
}

// remember notes what a change makes possible for those after it. A definition that exists
// may get a version; what a manifest leaves out of it is as it is.
func (v *surveyor) remember(u, live *unstructured.Unstructured, namespace string) {
	kind := u.GroupVersionKind().GroupKind()
	if live == nil {
		v.made[api.Target{APIVersion: u.GetAPIVersion(), Kind: kind.Kind, Namespace: namespace, Name: u.GetName()}.Identity()] = true
	}
	if kind != target.CRDKind {
		return
	}
	definition := u.DeepCopy().Object
	if live != nil {
		for _, field := range []string{"group", "names", "scope"} {
			if value, found, _ := unstructured.NestedFieldCopy(live.Object, "spec", field); found {
				_ = unstructured.SetNestedField(definition, value, "spec", field)
			}
		}
	}
	for _, planned := range target.PlannedKinds(definition) {
		v.planned[planned.GVK] = planned
	}
}
