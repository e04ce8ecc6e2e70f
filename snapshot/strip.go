package snapshot

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// serverSet are the fields of metadata that the server sets by itself.
var serverSet = []string{
	"creationTimestamp",
	"deletionGracePeriodSeconds",
	"deletionTimestamp",
	"generation",
	"managedFields",
	"resourceVersion",
	"selfLink",
	"uid",
}

// Strip returns a copy of obj without what the server sets: those fields of
// metadata, and status at the top level. Two objects that are equal stripped are
// equal in everything that a writer of the main resource decides.
func Strip(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := obj.DeepCopy()
	for _, field := range serverSet {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(out.Object, "status")
	return out
}
