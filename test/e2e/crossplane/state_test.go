package crossplane

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"janus.io/janus/test/crossplane"
	"janus.io/janus/test/harness"
)

// facet is a kind of objects that a change of packages may touch, and what is looked at of each.
type facet struct {
	kind      schema.GroupVersionResource
	namespace string
	labels    string
	// only leaves objects out; nil takes all.
	only func(*unstructured.Unstructured) bool
	// of are the details that count, beside the name and whether it is the same object as before.
	of func(*unstructured.Unstructured) []string
}

// ofJanus are the labels of the locks, the before-images and the revisions of Janus.
const ofJanus = "app.kubernetes.io/managed-by=janus"

// facets are all of them. What Crossplane writes at times of its own, such as the numbers of
// revisions and the times of conditions, is in none.
var facets = []facet{
	{kind: packageKind("v1", "providers"), of: ofProvider},
	{kind: packageKind("v1", "providerrevisions"), of: ofRevision},
	{kind: packageKind("v1beta1", "locks"), of: ofLock},
	{kind: schema.GroupVersionResource{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Resource: "managedresourcedefinitions"}, of: ofDefinition},
	{kind: definitionKind, only: ours, of: ofDefinition},
	{kind: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, namespace: crossplane.Namespace},
	{kind: schema.GroupVersionResource{Version: "v1", Resource: "services"}, namespace: crossplane.Namespace},
	{kind: schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, namespace: crossplane.Namespace},
	{kind: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, namespace: crossplane.Namespace},
	{kind: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, namespace: crossplane.Namespace},
	{kind: schema.GroupVersionResource{Group: "acme.io", Version: "v1", Resource: "buckets"}, of: ofResource},
	{kind: schema.GroupVersionResource{Group: "acme.io", Version: "v1", Resource: "configs"}, of: ofResource},
	{kind: schema.GroupVersionResource{Group: "acme.io", Version: "v1", Resource: "queues"}, of: ofResource},
	{kind: schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, namespace: harness.SystemNamespace, labels: ofJanus},
	{kind: schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, namespace: crossplane.Namespace, labels: ofJanus},
}

var definitionKind = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func packageKind(version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "pkg.crossplane.io", Version: version, Resource: resource}
}

// seen is what there is at a time.
type seen struct {
	lines []string
	uids  map[string]types.UID
}

// look reads all facets. Each object is a line, which says whether it was there before.
func look(ctx context.Context, client dynamic.Interface, before seen) (seen, error) {
	now := seen{uids: map[string]types.UID{}}
	var errs []error
	for _, f := range facets {
		list, err := client.Resource(f.kind).Namespace(f.namespace).List(ctx, metav1.ListOptions{LabelSelector: f.labels})
		if apierrors.IsNotFound(err) {
			continue // the kind is not served
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("list %s: %w", f.kind.Resource, err))
			continue
		}
		for i := range list.Items {
			u := &list.Items[i]
			if f.only != nil && !f.only(u) {
				continue
			}
			name := f.kind.Resource + "/" + u.GetName()
			now.uids[name] = u.GetUID()
			line := []string{name, "new"}
			if before.uids[name] == u.GetUID() {
				line[1] = "kept"
			}
			if u.GetDeletionTimestamp() != nil {
				line = append(line, "terminating")
			}
			if f.of != nil {
				line = append(line, f.of(u)...)
			}
			now.lines = append(now.lines, strings.Join(line, " "))
		}
	}
	slices.Sort(now.lines)
	return now, errors.Join(errs...)
}

// lost are the custom resources that were there before and are not any more, or are others.
func (s seen) lost(before seen) (out []string) {
	for name, uid := range before.uids {
		kind, _, _ := strings.Cut(name, "/")
		if slices.Contains([]string{"buckets", "configs", "queues"}, kind) && s.uids[name] != uid {
			out = append(out, name)
		}
	}
	return out
}

// lasting is what a rollback and an undo lead back to, with the same objects or with new ones.
func (s seen) lasting() (out []string) {
	for _, line := range s.lines {
		kind, _, _ := strings.Cut(line, "/")
		if slices.Contains([]string{"providers", "locks", "managedresourcedefinitions", "customresourcedefinitions", "buckets", "configs", "queues"}, kind) {
			fields := strings.Fields(line)
			for i, f := range fields {
				if owned, ok := strings.CutPrefix(f, "owners="); ok {
					fields[i] = controllerOf(owned)
				}
			}
			out = append(out, strings.Join(append(fields[:1], fields[2:]...), " "))
		}
	}
	return out
}

// controllerOf is that owner among several that controls the object.
func controllerOf(owned string) string {
	for _, owner := range strings.Split(owned, ",") {
		if strings.HasSuffix(owner, "!") {
			return owner
		}
	}
	return ""
}

func ours(u *unstructured.Unstructured) bool { return strings.HasSuffix(u.GetName(), ".acme.io") }

func field(u *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return fmt.Sprint(value)
}

func ofProvider(u *unstructured.Unstructured) []string {
	return []string{
		field(u, "spec", "package"), field(u, "spec", "revisionActivationPolicy"), "paused=" + u.GetAnnotations()["crossplane.io/paused"],
		field(u, "status", "currentRevision"), conditions(u),
		"labels=" + strings.Join(slices.Sorted(maps.Keys(u.GetLabels())), ","), "managers=" + strings.Join(ourManagers(u), ","),
	}
}

// ofRevision leaves out of an inactive one how it is: it is not looked after.
func ofRevision(u *unstructured.Unstructured) []string {
	state := field(u, "spec", "desiredState")
	out := []string{state, field(u, "spec", "image"), owners(u), "managers=" + strings.Join(ourManagers(u), ",")}
	if state == "Active" {
		out = append(out, conditions(u))
	}
	return out
}

// conditions are those that hold, and are of the current generation.
func conditions(u *unstructured.Unstructured) string {
	var out []string
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, one := range list {
		c, _ := one.(map[string]any)
		if name, _ := c["type"].(string); name != "Synced" && c["status"] == "True" && c["observedGeneration"] == u.GetGeneration() {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "+")
}

// ourManagers are the field managers of Janus that own anything.
func ourManagers(u *unstructured.Unstructured) []string {
	var out []string
	for _, entry := range u.GetManagedFields() {
		if strings.HasPrefix(entry.Manager, "janus") && !slices.Contains(out, entry.Manager) {
			out = append(out, entry.Manager)
		}
	}
	slices.Sort(out)
	return out
}

// owners are the objects that own one, and which of them controls it.
func owners(u *unstructured.Unstructured) string {
	var out []string
	for _, o := range u.GetOwnerReferences() {
		text := o.Kind + "/" + o.Name
		if o.Controller != nil && *o.Controller {
			text += "!"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return "owners=" + strings.Join(out, ",")
}

func ofLock(u *unstructured.Unstructured) []string {
	var out []string
	list, _, _ := unstructured.NestedSlice(u.Object, "packages")
	for _, one := range list {
		p, _ := one.(map[string]any)
		out = append(out, fmt.Sprintf("%v=%v@%v", p["name"], p["source"], p["version"]))
	}
	slices.Sort(out)
	return out
}

// ofDefinition takes the schemas as a digest.
func ofDefinition(u *unstructured.Unstructured) []string {
	versions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "versions")
	text, _ := json.Marshal(versions)
	return []string{owners(u), fmt.Sprintf("schema=%x", sha256.Sum256(text))[:16]}
}

func ofResource(u *unstructured.Unstructured) []string { return []string{field(u, "spec")} }

// difference lists what one look has and another lacks.
func difference(want, got []string) string {
	var b strings.Builder
	for _, line := range want {
		if !slices.Contains(got, line) {
			b.WriteString("\n  - " + line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			b.WriteString("\n  + " + line)
		}
	}
	return b.String()
}
