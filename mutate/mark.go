package mutate

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/snapshot"
)

// MarkerAnnotation is set on objects that a Transaction creates, and on empty ones that a
// rollback creates again, until that is on record. It shows, after
// a lost reply, whose object it is: an object without any field of its own, such
// as an empty ConfigMap, would have no entry in managedFields.
const MarkerAnnotation = "janus.io/transaction-uid"

// mark adds to an object that is to be created what says whose it is: the marker, and
// for people a label with the name of the Transaction and an annotation with the whole
// of it. They replace what the content says there.
func (n Names) mark(body *unstructured.Unstructured) {
	meta, _ := body.Object["metadata"].(map[string]any)
	enter(meta, "annotations", map[string]any{MarkerAnnotation: n.Marker, api.TransactionKey: n.Transaction.String()})
	labels := map[string]any{}
	if len(body.GetLabels()) == 0 {
		maps.Copy(labels, defaultLabels(body))
	}
	labels[api.TransactionKey] = snapshot.LabelValue(n.Transaction.Name)
	enter(meta, "labels", labels)
}

// marked reports whether an object bears the mark of the item.
func (n Names) marked(obj *unstructured.Unstructured) bool {
	return n.Marker != "" && obj.GetAnnotations()[MarkerAnnotation] == n.Marker
}

// enter adds to a map of the metadata. One that is no map stays as it is: the API server
// refuses it, and dropping it would hide that.
func enter(meta map[string]any, name string, more map[string]any) {
	switch there := meta[name].(type) {
	case nil:
		meta[name] = more
	case map[string]any:
		maps.Copy(there, more)
	}
}

// defaultLabels are those that the API server gives an object that has none of its own. It
// would not where there is one of ours.
func defaultLabels(body *unstructured.Unstructured) map[string]any {
	switch body.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}, schema.GroupKind{Kind: "ReplicationController"}:
		// If they are no map, the API server refuses the template.
		labels, _, _ := unstructured.NestedMap(body.Object, "spec", "template", "metadata", "labels")
		return labels
	default:
		return nil
	}
}

// unmarked is an object without what mark has added to it.
func unmarked(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj == nil {
		return nil
	}
	out := obj.DeepCopy()
	meta, _ := out.Object["metadata"].(map[string]any)
	leaveOut(meta, "annotations", MarkerAnnotation, api.TransactionKey)
	leaveOut(meta, "labels", api.TransactionKey)
	return out
}

// keepMarks gives an object what mark has added to another.
func keepMarks(obj, from *unstructured.Unstructured) {
	meta, _ := obj.Object["metadata"].(map[string]any)
	for name, keys := range map[string][]string{"annotations": {MarkerAnnotation, api.TransactionKey}, "labels": {api.TransactionKey}} {
		values, _, _ := unstructured.NestedStringMap(from.Object, "metadata", name)
		for _, key := range keys {
			if value, there := values[key]; there {
				enter(meta, name, map[string]any{key: value})
			}
		}
	}
}

// leaveOut takes keys out of a map of the metadata, and the map if nothing is left of it.
func leaveOut(meta map[string]any, name string, keys ...string) {
	there, _ := meta[name].(map[string]any)
	for _, key := range keys {
		delete(there, key)
	}
	if len(there) == 0 {
		delete(meta, name)
	}
}
