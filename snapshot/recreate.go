package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/fieldmerge"
)

// recreateRules are what Strip alone does not do to make an object of a kind
// acceptable to the server again. A kind that is missing needs nothing:
//
// A Service keeps its clusterIP and nodePorts, because clients know it by them;
// if they were taken meanwhile the server says 422, which is better than another
// address. A ServiceAccount keeps its list of secrets: it may have been written by
// hand, to say which Secrets its Pods may mount, and a name in it that leads
// nowhere does no harm. A PersistentVolume keeps its claimRef, and so belongs to
// the same claim as before.
var recreateRules = map[schema.GroupKind]func(object map[string]any, of *unstructured.Unstructured){
	{Group: "batch", Kind: "Job"}:   recreateJob,
	{Kind: "Pod"}:                   recreatePod,
	{Kind: "PersistentVolumeClaim"}: recreateClaim,
}

// ForCreate returns what may be POSTed to make obj again: Strip of it, less what
// the server would refuse or misunderstand for its kind. Owner references are
// kept; whether their owners still live is for the caller to find out. So is the
// status of a custom kind: where it is no subresource it is a field like any other,
// and where it is one the server drops it.
func ForCreate(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := fieldmerge.Strip(obj)
	if status, ok := obj.Object["status"]; ok && fieldmerge.Custom(obj.GroupVersionKind().GroupKind()) {
		out.Object["status"] = runtime.DeepCopyJSONValue(status)
	}
	if rule, ok := recreateRules[out.GroupVersionKind().GroupKind()]; ok {
		rule(out.Object, obj)
	}
	return out
}

// recreateJob takes off the selector and the labels that the server derived from
// the uid of the old Job, with which it refuses the new one (422). With
// manualSelector they are the user's.
func recreateJob(object map[string]any, _ *unstructured.Unstructured) {
	if manual, _, _ := unstructured.NestedBool(object, "spec", "manualSelector"); manual {
		return
	}
	unstructured.RemoveNestedField(object, "spec", "selector")
	for _, label := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
		removeEntry(object, label, "metadata", "labels")
		removeEntry(object, label, "spec", "template", "metadata", "labels")
	}
}

// recreatePod takes off what the old Pod has got with its Node, unless a client has set it: the
// Node that the scheduler chose may be full, cordoned or gone by now, and a Pod that names a Node
// is not scheduled at all. And it takes off ephemeral containers, which the server
// refuses on create.
func recreatePod(object map[string]any, of *unstructured.Unstructured) {
	for _, path := range FromNode(of) {
		removeEntry(object, path[len(path)-1], path[:len(path)-1]...)
	}
	unstructured.RemoveNestedField(object, "spec", "ephemeralContainers")
}

// FromNode lists the fields that a Pod has got when it was bound to a Node: its name, and
// labels that admission copies.
func FromNode(pod *unstructured.Unstructured) [][]string {
	var out [][]string
	for _, path := range [][]string{
		{"spec", "nodeName"},
		{"metadata", "labels", corev1.LabelTopologyZone},
		{"metadata", "labels", corev1.LabelTopologyRegion},
	} {
		_, set, _ := unstructured.NestedString(pod.Object, path...)
		bound, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
		if set && bound != "" && !fieldmerge.Managed(pod, path...) {
			out = append(out, path)
		}
	}
	return out
}

// recreateClaim takes off the marks of a binding that ended with the old claim:
// with them the volume controller declares the new one Lost, because the volume
// names another uid. Without them the claim is Pending until the volume's
// claimRef is cleared, and then binds. The name of the volume stays: an empty
// new volume in place of the data would be worse than none.
func recreateClaim(object map[string]any, _ *unstructured.Unstructured) {
	removeEntry(object, "pv.kubernetes.io/bind-completed", "metadata", "annotations")
	removeEntry(object, "pv.kubernetes.io/bound-by-controller", "metadata", "annotations")
}

// removeEntry removes a key from the map at path, and the map with its last key:
// the server never shows an empty one.
func removeEntry(object map[string]any, key string, path ...string) {
	entries, found, err := unstructured.NestedFieldNoCopy(object, path...)
	m, isMap := entries.(map[string]any)
	if !found || err != nil || !isMap {
		return
	}
	if _, there := m[key]; !there {
		return
	}
	delete(m, key)
	if len(m) == 0 {
		unstructured.RemoveNestedField(object, path...)
	}
}
