package fieldmerge

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

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

// Custom reports whether a kind is not one of Kubernetes itself. The status of those
// of Kubernetes is what its controllers observe, and is for them to write: a Pod
// that says Running before it is scheduled would be a lie.
func Custom(kind schema.GroupKind) bool {
	switch kind.Group {
	case "apiextensions.k8s.io", "apiregistration.k8s.io":
		return false
	default:
		return !scheme.Scheme.IsGroupRegistered(kind.Group)
	}
}
