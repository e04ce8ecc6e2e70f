package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/target"
)

// sources say where manifests come from, and what is to be removed besides.
type sources struct {
	resource.FilenameOptions
	remove []string
}

// given reports whether there are any.
func (f sources) given() bool {
	return len(f.Filenames) > 0 || f.Kustomize != "" || len(f.remove) > 0
}

// read reads the manifests, in the order of the files and of what is in them. Nothing is
// asked of the cluster.
func (f sources) read(s *session, namespace string) ([]*unstructured.Unstructured, error) {
	if len(f.Filenames) == 0 && f.Kustomize == "" {
		return nil, nil
	}
	infos, err := resource.NewBuilder(s.flags).Unstructured().Local().ContinueOnError().
		NamespaceParam(namespace).FilenameParam(false, &f.FilenameOptions).Flatten().Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("read the manifests: %w", err)
	}
	var out []*unstructured.Unstructured
	for _, info := range infos {
		u, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("read the manifests: %s is no object", info.Source)
		}
		if u.GetName() == "" && u.GroupVersionKind().GroupKind() != api.Kind.GroupKind() {
			return nil, fmt.Errorf("%s in %s has no metadata.name: a change names its target (generateName cannot be used)", u.GetKind(), info.Source)
		}
		out = append(out, u)
	}
	if len(out) == 0 {
		return nil, errors.New("there are no objects in the manifests")
	}
	return out, nil
}

// surveyor finds out what has to be done to bring manifests into effect.
type surveyor struct {
	mapper    meta.RESTMapper
	client    dynamic.Interface
	namespace string
	planned   map[schema.GroupKind]target.PlannedKind // kinds that an earlier manifest defines
	made      map[identity]bool                       // objects that an earlier manifest makes
}

// identity is an object by whatever version it is named.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
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
	return &surveyor{
		mapper: mapper, client: client, namespace: namespace,
		planned: map[schema.GroupKind]target.PlannedKind{}, made: map[identity]bool{},
	}, nil
}

// change is the change that brings a manifest into effect: what exists is patched, what
// does not is created.
func (v *surveyor) change(ctx context.Context, u *unstructured.Unstructured) (api.Change, error) {
	gvk := u.GroupVersionKind()
	t := api.Target{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName(), Namespace: u.GetNamespace()}
	kind := api.Patch
	switch exists, err := v.exists(ctx, gvk, &t); {
	case err != nil:
		return api.Change{}, err
	case !exists:
		kind = api.Create
		v.remember(u, t.Namespace)
	}
	content, err := contentFor(u, t.Namespace)
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

// exists looks for a target, and completes its namespace. What an earlier manifest makes
// will exist.
func (v *surveyor) exists(ctx context.Context, gvk schema.GroupVersionKind, t *api.Target) (bool, error) {
	mapping, err := v.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	planned, isPlanned := v.planned[gvk.GroupKind()]
	switch {
	case meta.IsNoMatchError(err) && isPlanned:
		v.place(t, planned.Namespaced)
		return v.made[identity{gvk.GroupKind(), t.Namespace, t.Name}], nil
	case meta.IsNoMatchError(err):
		return false, fmt.Errorf("%s %s: the cluster serves no kind %s in %s, and no CustomResourceDefinition before it defines one", t.Kind, t.Name, t.Kind, t.APIVersion)
	case err != nil:
		return false, fmt.Errorf("find the kind of %s %s: %w", t.Kind, t.Name, err)
	}
	v.place(t, mapping.Scope.Name() != meta.RESTScopeNameRoot)
	switch {
	case v.made[identity{gvk.GroupKind(), t.Namespace, t.Name}]:
		return true, nil
	case v.made[identity{target.NamespaceKind, "", t.Namespace}]:
		return false, nil
	}
	_, err = v.client.Resource(mapping.Resource).Namespace(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look whether %s %s exists, so that it is patched or created: %w", t.Kind, t.Name, err)
	}
	return true, nil
}

// place completes the namespace of a target.
func (v *surveyor) place(t *api.Target, namespaced bool) {
	switch {
	case !namespaced:
		t.Namespace = ""
	case t.Namespace == "":
		t.Namespace = v.namespace
	}
}

// remember notes what a creation makes possible for those after it.
func (v *surveyor) remember(u *unstructured.Unstructured, namespace string) {
	kind := u.GroupVersionKind().GroupKind()
	v.made[identity{kind, namespace, u.GetName()}] = true
	if kind == target.CRDKind {
		for _, planned := range target.PlannedKinds(u.Object) {
			v.planned[planned.GVK.GroupKind()] = planned
		}
	}
}

// named finds what KIND/NAME or RESOURCE.GROUP/NAME names.
func (v *surveyor) named(text string) (schema.GroupVersionKind, schema.GroupVersionResource, api.Target, error) {
	var none schema.GroupVersionResource
	kind, name, ok := strings.Cut(text, "/")
	if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
		return schema.GroupVersionKind{}, none, api.Target{}, fmt.Errorf("%s: want KIND/NAME, such as configmap/settings", text)
	}
	gvk, err := v.kind(kind)
	if err != nil {
		return gvk, none, api.Target{}, fmt.Errorf("%s: %w", text, err)
	}
	mapping, err := v.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return gvk, none, api.Target{}, fmt.Errorf("%s: find the kind %s: %w", text, kind, err)
	}
	t := api.Target{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: name}
	if mapping.Scope.Name() != meta.RESTScopeNameRoot {
		t.Namespace = v.namespace
	}
	return gvk, mapping.Resource, t, nil
}

// removal is the Delete of what KIND/NAME names. It reports whether there is such a thing, as
// far as whoever asks may see that.
func (v *surveyor) removal(ctx context.Context, text string) (change api.Change, exists bool, err error) {
	gvk, _, t, err := v.named(text)
	if err != nil {
		return api.Change{}, false, fmt.Errorf("--delete: %w", err)
	}
	exists, err = v.exists(ctx, gvk, &t)
	return api.Change{Target: t, Type: api.Delete}, exists || err != nil, nil
}

// kind finds a kind by what people call it: a kind, a resource or its short name, with
// version and group if they are needed.
func (v *surveyor) kind(text string) (schema.GroupVersionKind, error) {
	full, group := schema.ParseResourceArg(strings.ToLower(text))
	if full != nil {
		if gvk, err := v.mapper.KindFor(*full); err == nil {
			return gvk, nil
		}
	}
	gvk, err := v.mapper.KindFor(group.WithVersion(""))
	if err == nil {
		return gvk, nil
	}
	var unknown *meta.NoResourceMatchError
	if !errors.As(err, &unknown) {
		return gvk, fmt.Errorf("find the kind %s: %w", text, err)
	}
	return gvk, fmt.Errorf("the cluster serves no kind %q; kubectl api-resources lists those that it does", text)
}

// bare is a manifest without what the API server sets, which a manifest that was read from
// a cluster has.
func bare(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(out.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	if annotations := out.GetAnnotations(); annotations != nil && len(annotations) == 0 {
		unstructured.RemoveNestedField(out.Object, "metadata", "annotations")
	}
	delete(out.Object, "status")
	return out
}
