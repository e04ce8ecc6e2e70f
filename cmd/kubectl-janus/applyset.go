package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate/kinds"
)

// Labels and annotations of an ApplySet, which tell kubectl and other tools what is part of it
// (KEP-3659).
const (
	applySetID         = "applyset.kubernetes.io/id"
	applySetPartOf     = "applyset.kubernetes.io/part-of"
	applySetTooling    = "applyset.kubernetes.io/tooling"
	applySetKinds      = "applyset.kubernetes.io/contains-group-kinds"
	applySetNamespaces = "applyset.kubernetes.io/additional-namespaces"

	tooling = "kubectl-janus/v1"
)

// applySet is a set as an ApplySet: each of its objects has a label, and its parent, a
// ConfigMap, lists their kinds and their namespaces.
type applySet struct {
	id, parent string
	// was is the parent as it is; nil if there is none.
	was *unstructured.Unstructured
}

// applySet reads what is known of a set.
func (v *surveyor) applySet(ctx context.Context, set string) (*applySet, error) {
	a := &applySet{parent: "janus-set-" + set}
	sum := sha256.Sum256([]byte(a.parent + "." + v.namespace + ".ConfigMap."))
	a.id = "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
	was, err := v.client.Resource(configMaps).Namespace(v.namespace).Get(ctx, a.parent, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return a, nil
	case err != nil:
		return nil, explain("read the set "+set, err)
	case was.GetAnnotations()[applySetTooling] != tooling:
		by := cmp.Or(was.GetAnnotations()[applySetTooling], "another client")
		return nil, fmt.Errorf("ConfigMap %s/%s is managed by %s, and not by kubectl janus: give --set another name", v.namespace, a.parent, errclass.Printable(by))
	case was.GetLabels()[applySetID] != a.id:
		return nil, fmt.Errorf("ConfigMap %s/%s has another label %s than the set would have: give --set another name", v.namespace, a.parent, applySetID)
	}
	a.was = was
	return a, nil
}

// mark labels manifests as parts of the set.
func (a *applySet) mark(manifests []manifest) ([]manifest, error) {
	out := make([]manifest, len(manifests))
	for i, m := range manifests {
		labels := maps.Clone(m.GetLabels())
		if other := labels[applySetPartOf]; other != "" && other != a.id {
			return nil, fmt.Errorf("%s is part of another set, as its label %s says", m.describe(m.GetNamespace()), applySetPartOf)
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[applySetPartOf] = a.id
		out[i] = manifest{m.DeepCopy(), m.source}
		out[i].SetLabels(labels)
	}
	return out, nil
}

// refuse refuses a change that would take an object out of another set, as kubectl does too.
func (a *applySet) refuse(live *unstructured.Unstructured) error {
	if a == nil || live == nil {
		return nil
	}
	if other := live.GetLabels()[applySetPartOf]; other == "" || other == a.id {
		return nil
	}
	name, in := live.GetKind()+" "+live.GetName(), ""
	if namespace := live.GetNamespace(); namespace != "" {
		name, in = live.GetKind()+" "+namespace+"/"+live.GetName(), " --namespace="+namespace
	}
	return fmt.Errorf("%s is part of another set, as its label %s says: to move it, run kubectl label %s %s%s %s- first",
		name, applySetPartOf, strings.ToLower(live.GetKind()), live.GetName(), in, applySetPartOf)
}

// parentFor is the parent of the set when the changes are made. Unless what the set has no more
// is deleted, it stays of the kinds and in the namespaces that it was.
func (a *applySet) parentFor(namespace string, changes []api.Change, pruned bool) manifest {
	groupKinds, namespaces := map[string]bool{}, map[string]bool{}
	if !pruned {
		groupKinds, namespaces = a.list(applySetKinds), a.list(applySetNamespaces)
	}
	for _, c := range changes {
		if c.Type == api.Delete {
			continue
		}
		groupKinds[schema.FromAPIVersionAndKind(c.Target.APIVersion, c.Target.Kind).GroupKind().String()] = true
		if c.Target.Namespace != "" && c.Target.Namespace != namespace {
			namespaces[c.Target.Namespace] = true
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	u.SetName(a.parent)
	u.SetNamespace(namespace)
	u.SetLabels(map[string]string{applySetID: a.id})
	u.SetAnnotations(map[string]string{
		applySetTooling: tooling, applySetKinds: joined(groupKinds), applySetNamespaces: joined(namespaces),
	})
	return manifest{u, "--set"}
}

// list reads a list off an annotation of the parent.
func (a *applySet) list(annotation string) map[string]bool {
	out := map[string]bool{}
	if a.was == nil {
		return out
	}
	for text := range strings.SplitSeq(a.was.GetAnnotations()[annotation], ",") {
		if text != "" {
			out[text] = true
		}
	}
	return out
}

// discovered returns an error if the kinds of a group cannot be discovered now, such as while an
// aggregated API server does not answer.
func (v *surveyor) discovered(group string) error {
	_, _, err := v.discovery.ServerGroupsAndResources()
	var failed *discovery.ErrGroupDiscoveryFailed
	if err == nil || !errors.As(err, &failed) {
		return err
	}
	for gv, why := range failed.Groups {
		if gv.Group == group {
			return fmt.Errorf("the kinds of group %s cannot be asked for: %w; see kubectl get apiservices", group, why)
		}
	}
	return nil
}

func joined(set map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(set)), ",") }

// prune returns the deletions of what is part of the set and is not changed. What others need
// is deleted last.
func (v *surveyor) prune(ctx context.Context, a *applySet, changes []api.Change) ([]api.Change, error) {
	wanted := map[api.Target]bool{}
	for _, c := range changes {
		wanted[c.Target.Identity()] = true
	}
	var out []api.Change
	for text := range a.list(applySetKinds) {
		mapping, err := v.mapper.RESTMapping(schema.ParseGroupKind(text))
		if meta.IsNoMatchError(err) {
			if err := v.discovered(schema.ParseGroupKind(text).Group); err != nil {
				return nil, fmt.Errorf("list what --prune is to delete of %s: %w", text, err)
			}
			continue // The kind is gone, and its objects with it.
		}
		if err != nil {
			return nil, fmt.Errorf("find the kind %s of the set: %w", text, err)
		}
		namespaces := map[string]bool{"": true}
		if mapping.Scope.Name() != meta.RESTScopeNameRoot {
			namespaces = a.list(applySetNamespaces)
			namespaces[v.namespace] = true
		}
		for namespace := range namespaces {
			list, err := v.client.Resource(mapping.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: applySetPartOf + "=" + a.id})
			if err != nil {
				return nil, explain(fmt.Sprintf("list what --prune is to delete of %s", mapping.Resource.GroupResource()), err)
			}
			for _, u := range list.Items {
				t := api.Target{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
				if !wanted[t.Identity()] && u.GetDeletionTimestamp() == nil {
					out = append(out, api.Change{Target: t, Type: api.Delete})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b api.Change) int {
		rank := func(c api.Change) int {
			return kinds.InstallRank(schema.FromAPIVersionAndKind(c.Target.APIVersion, c.Target.Kind).GroupKind())
		}
		if d := rank(b) - rank(a); d != 0 {
			return d
		}
		return strings.Compare(a.Target.String(), b.Target.String())
	})
	return out, nil
}
