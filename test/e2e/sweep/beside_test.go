package sweep

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// besides are the kinds in which changes of another object show: what controllers make of
// it, what holds data, and what it leads to.
var besides = []schema.GroupVersionResource{
	{Version: "v1", Resource: "pods"}, {Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"},
	{Version: "v1", Resource: "services"}, {Version: "v1", Resource: "endpoints"}, {Version: "v1", Resource: "serviceaccounts"},
	{Version: "v1", Resource: "persistentvolumeclaims"}, {Version: "v1", Resource: "persistentvolumes"},
	{Group: "apps", Version: "v1", Resource: "replicasets"}, {Group: "apps", Version: "v1", Resource: "controllerrevisions"},
	{Group: "batch", Version: "v1", Resource: "jobs"}, {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
}

// beside is what is there besides the object of the sample: each object by its uid or, of
// what a controller makes, how many there are. Nobody rolls back what has run, nor the history
// that a controller keeps of templates.
func (r *run) beside() map[string]string {
	r.t.Helper()
	out := map[string]string{}
	counts := map[string]int{}
	for _, resource := range besides {
		list, err := r.Dynamic.Resource(resource).List(r.t.Context(), metav1.ListOptions{})
		require.NoError(r.t, err)
		for i := range list.Items {
			obj := &list.Items[i]
			switch {
			case !r.concerns(obj), isHistory(obj), hasRun(obj):
			case r.obj().GetKind() == "DaemonSet" && resource.Resource == "pods":
				out[resource.Resource] = "some" // Other samples are Nodes.
			case len(obj.GetOwnerReferences()) > 0 || resource.Resource == "endpoints":
				counts[resource.Resource]++
			default:
				out[resource.Resource+" "+obj.GetName()] = string(obj.GetUID())
			}
		}
	}
	for kind, n := range counts {
		out[kind] = fmt.Sprint(n)
	}
	return out
}

// isHistory reports whether an object is of a template that is not in use.
func isHistory(obj *unstructured.Unstructured) bool {
	replicas, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	return len(obj.GetOwnerReferences()) > 0 && (obj.GetKind() == "ControllerRevision" || obj.GetKind() == "ReplicaSet" && replicas == 0)
}

func hasRun(obj *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
	return obj.GetKind() == "Pod" && (phase == "Succeeded" || phase == "Failed")
}

// concerns reports whether an object is one of this sample's, and neither the changed one
// nor what Janus keeps.
func (r *run) concerns(obj *unstructured.Unstructured) bool {
	if obj.GetDeletionTimestamp() != nil || obj.GetKind() == r.obj().GetKind() && obj.GetName() == r.obj().GetName() {
		return false
	}
	if obj.GetNamespace() == "" {
		claimed, _, _ := unstructured.NestedString(obj.Object, "spec", "claimRef", "namespace")
		return claimed == r.Namespace || strings.Contains(obj.GetName(), strings.ReplaceAll(r.Namespace, "-", ""))
	}
	// The counter of Transactions is made with the first one, and stays.
	return obj.GetNamespace() == r.Namespace && !strings.Contains(obj.GetName(), "-rollback") && obj.GetName() != "janus-revisions" && obj.GetLabels()["app.kubernetes.io/managed-by"] != "janus"
}

// strayed lists what is not there any more, is another, or has come, once the controllers
// have had time to make it right.
func (r *run) strayed(before map[string]string) []string {
	r.t.Helper()
	var out []string
	for range 60 {
		after := r.beside()
		out = nil
		for _, what := range slices.Sorted(maps.Keys(before)) {
			if before[what] != after[what] {
				out = append(out, fmt.Sprintf("%s (was %s, is %s)", what, before[what], after[what]))
			}
		}
		for _, what := range slices.Sorted(maps.Keys(after)) {
			if before[what] == "" {
				out = append(out, what+" (new)")
			}
		}
		if len(out) == 0 {
			return nil
		}
		time.Sleep(250 * time.Millisecond)
	}
	return out
}

// noneStrayed checks whether all else is as it was before a change that was rolled back.
func (r *run) noneStrayed(s step, what string, before map[string]string, txn *api.Transaction) {
	r.t.Helper()
	strayed := r.strayed(before)
	assert.Empty(r.t, strayed, "%s, %s of %s: beside it\n%s", r.title(), what, s.name, harness.Describe(txn))
}
