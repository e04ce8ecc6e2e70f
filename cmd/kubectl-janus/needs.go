package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
)

// needs finds out what rights the changes of a Transaction need.
func (v *surveyor) needs(ctx context.Context, t *api.Transaction, rerun bool) (*needs, error) {
	n := &needs{all: map[need]bool{}, more: map[string][]rbacv1.PolicyRule{}}
	apart := map[schema.GroupVersionKind]bool{}
	made := map[string]bool{} // Namespaces, in which nobody can be given a role yet.
	deletes := slices.ContainsFunc(t.Spec.Changes, func(c api.Change) bool { return c.WhenFalse == api.WhenFalseDelete })
	for _, c := range t.Spec.Changes {
		switch kind := kindOf(c.Target).GroupKind(); {
		case kind == target.NamespaceKind && c.Type == api.Create:
			made[c.Target.Name] = true
		case kind == target.CRDKind && c.Content != nil:
			for _, planned := range target.PlannedKinds(objectOf(c.Content)) {
				v.planned[planned.GVK] = planned
				apart[planned.GVK] = statusApart(objectOf(c.Content), planned.GVK.Version)
			}
		}
	}
	for i, c := range t.Spec.Changes {
		resource, namespaced, err := v.resource(c.Target)
		var unserved *meta.NoKindMatchError
		if errors.As(err, &unserved) && c.Activation != nil {
			n.note("%s: the cluster does not serve its kind, so no rights to it are printed. The change is skipped as long as that is so.", c.Target.String())
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("change %s: %w", plan.ChangeName(i, c), err)
		}
		v.place(&c.Target, namespaced)
		scope := c.Target.Namespace
		if made[scope] {
			scope = ofCluster
		}
		hasStatus, err := v.hasStatus(c.Target, resource, apart)
		if err != nil {
			return nil, fmt.Errorf("change %s: %w", plan.ChangeName(i, c), err)
		}
		n.change(scope, resource, c, mayBe(c, rerun, deletes), hasStatus)
		if err := v.contents(ctx, n, resource, scope, c); err != nil {
			return nil, fmt.Errorf("change %s: %w", plan.ChangeName(i, c), err)
		}
		if from := c.ContentFrom; from != nil && !api.IsContentObject(from.Ref().Name, t.Name) {
			n.add(t.Namespace, schema.GroupResource{Resource: sourceOf(from)}, from.Ref().Name, "get")
		}
	}
	return n, nil
}

// mayBe lists the types that a change may turn out to be.
func mayBe(c api.Change, rerun, deletes bool) []api.ChangeType {
	types := []api.ChangeType{c.Type}
	if rerun && c.Release == nil && (c.Type == api.Create || c.Type == api.Patch) {
		types = []api.ChangeType{api.Create, api.Patch}
	}
	// What goes with the target of another change that is deleted is deleted as well. Which that
	// is only janusd finds out.
	if deletes && c.Type != api.Await {
		types = append(types, api.Delete)
	}
	return types
}

// change adds what a change needs on its target, and what belongs to its kind.
func (n *needs) change(scope string, resource schema.GroupResource, c api.Change, types []api.ChangeType, hasStatus bool) {
	for _, t := range types {
		verbs := mutate.VerbsWithUndo(t)
		if c.Release != nil {
			making, rollingBack := mutate.Verbs(t) // Its undo is a Patch too.
			verbs = append(making, rollingBack...)
		}
		n.add(scope, resource, c.Target.Name, verbs...)
		for _, beside := range mutate.RightsBeside(t, kindOf(c.Target).GroupKind(), resource) {
			at, name := scope, ""
			if beside.OfCluster {
				at = ofCluster
			}
			if beside.Namesake {
				name = c.Target.Name
			}
			if beside.Resource.Resource == resource.Resource+"/status" && !hasStatus {
				continue
			}
			n.add(at, beside.Resource, name, beside.Verbs...)
		}
	}
}

// contents adds what is needed because of what an object is, or holds.
func (v *surveyor) contents(ctx context.Context, n *needs, resource schema.GroupResource, scope string, c api.Change) error {
	kind := kindOf(c.Target).GroupKind()
	makes := c.Type == api.Create || c.Type == api.Delete
	switch {
	case kind == target.NamespaceKind && makes:
		n.add(ofCluster, schema.GroupResource{Group: "*", Resource: "*"}, "", "list")
		n.note("Namespace %s: it is deleted again only if it holds nothing of others, so the ServiceAccount may list everything in the cluster, Secrets included.", c.Target.Name)
	case kind == target.CRDKind && makes, kind.Group == rbacv1.GroupName:
	default:
		return nil
	}
	objects, err := v.versions(ctx, c)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if kind.Group == rbacv1.GroupName {
			n.grantable(scope, resource, object, c)
			continue
		}
		for _, planned := range target.PlannedKinds(object) { // Versions of one resource.
			n.add(ofCluster, planned.GVR.GroupResource(), "", "list")
		}
	}
	return nil
}

// grantable adds what it takes to write a role or a binding: nobody may grant what they don't have.
func (n *needs) grantable(scope string, resource schema.GroupResource, object map[string]any, c api.Change) {
	if ref, found, _ := unstructured.NestedStringMap(object, "roleRef"); found {
		at, of := ofCluster, schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}
		if ref["kind"] == "Role" {
			at, of.Resource = scope, "roles"
		}
		if at == ofCluster && scope != ofCluster {
			at = scope // Asked for in the namespace of the binding.
		}
		n.add(at, of, ref["name"], "bind")
		return
	}
	var role rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &role); err != nil {
		return // The API server says what is wrong with it.
	}
	if role.AggregationRule != nil {
		n.note("%s: its rights are those of others, so the ServiceAccount needs escalate on %s, which is not granted here.", c.Target.String(), resource)
	}
	for _, rule := range role.Rules {
		if !slices.ContainsFunc(n.more[scope], func(known rbacv1.PolicyRule) bool { return fmt.Sprint(known) == fmt.Sprint(rule) }) {
			n.more[scope] = append(n.more[scope], rule)
		}
	}
	n.note("%s: who grants rights must have them, so the ServiceAccount gets those that are in it.", c.Target.String())
}

// versions are the object as it is, if it is there, and as it is to be.
func (v *surveyor) versions(ctx context.Context, c api.Change) ([]map[string]any, error) {
	var out []map[string]any
	if c.Content != nil {
		out = append(out, objectOf(c.Content))
	}
	mapping, err := v.mapper.RESTMapping(kindOf(c.Target).GroupKind(), kindOf(c.Target).Version)
	if err != nil || c.Type == api.Create {
		return out, nil //nolint:nilerr // a kind that is not served has no objects
	}
	live, err := v.client.Resource(mapping.Resource).Namespace(c.Target.Namespace).Get(ctx, c.Target.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return out, nil
	case err != nil:
		return nil, fmt.Errorf("read %s, to see what rights its change takes: %w", c.Target.String(), err)
	}
	return append(out, live.Object), nil
}

// resource is that of a target, which an earlier change may define.
func (v *surveyor) resource(t api.Target) (resource schema.GroupResource, namespaced bool, err error) {
	gvk := kindOf(t)
	if planned, ok := v.planned[gvk]; ok {
		return planned.GVR.GroupResource(), planned.Namespaced, nil
	}
	mapping, err := v.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return schema.GroupResource{}, false, fmt.Errorf("find the kind of %s: %w", t.String(), err)
	}
	return mapping.Resource.GroupResource(), mapping.Scope.Name() != meta.RESTScopeNameRoot, nil
}

// hasStatus reports whether the status of a kind is written apart. Of kinds that the Transaction
// defines, that is known.
func (v *surveyor) hasStatus(t api.Target, resource schema.GroupResource, defined map[schema.GroupVersionKind]bool) (bool, error) {
	if apart, ok := defined[kindOf(t)]; ok {
		return apart, nil
	}
	served, err := v.discovery.ServerResourcesForGroupVersion(t.APIVersion)
	if err != nil {
		return false, fmt.Errorf("ask for the resources of %s: %w", t.APIVersion, err)
	}
	return slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource+"/status" }), nil
}

// statusApart reports whether a definition has the status of a version written apart.
func statusApart(definition map[string]any, version string) bool {
	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
	return slices.ContainsFunc(versions, func(entry any) bool {
		one, _ := entry.(map[string]any)
		_, found, _ := unstructured.NestedMap(one, "subresources", "status")
		return found && one["name"] == version
	})
}

func objectOf(content *runtime.RawExtension) map[string]any {
	var out map[string]any
	if json.Unmarshal(content.Raw, &out) != nil {
		return nil // The API server says what is wrong with it.
	}
	return out
}

func sourceOf(from *api.ContentSource) string {
	if from.Confidential() {
		return secrets.Resource
	}
	return configMaps.Resource
}

func kindOf(t api.Target) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(t.APIVersion, t.Kind)
}
