package fieldmerge

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
)

// Images are the states of one object that undoing a change, or checking
// whether it is in effect, works with. What the server sets by itself is left out of
// every comparison.
type Images struct {
	// Type is how the kind of the object merges. Without one, every list is
	// compared as a whole.
	Type typed.ParseableType
	// Before is the before-image, After what the change made of it, as a dry run
	// gave it, and Live what is there now.
	Before, After, Live *unstructured.Unstructured
	// Ours tells the field managers of the change.
	Ours func(manager string) bool
	// HandedOver is set when the change has committed, and with it the fields were left
	// to those who had owned them before, and to managers of Ours. That a field has an
	// owner again says nothing then; that it has another value does, no matter who wrote it.
	HandedOver bool
	// Former is what tells who had owned fields before, if that is not Before: the object
	// as it was before an earlier change of it by the same Transaction.
	Former *unstructured.Unstructured
	// Took is what the change took from each owner, as a dry run of it told: the API
	// server takes fields of which the value stays as it is as well, and in every version
	// of the kind. Without it, what the change took is told from the values.
	Took []metav1.ManagedFieldsEntry
	// LeftTo is the manager to which the change has left what nobody owned before, if it was
	// one of others.
	LeftTo string
	// Given is what its commit gave to others, where that tells more than Before: the owners
	// before another change that it had undone.
	Given []metav1.ManagedFieldsEntry
	// Force restores the fields too that others have written since.
	Force bool
	// Status is set when the status counts: it is a field like any other of a custom
	// kind without a status subresource, and the change writes it. Where After has
	// one, it counts as well.
	Status bool
}

// content is what of an object is compared.
func (i Images) content(obj *unstructured.Unstructured) map[string]any {
	out := Strip(obj).Object
	if status := obj.Object["status"]; status != nil && i.statusCounts() {
		out["status"] = runtime.DeepCopyJSONValue(status)
	}
	return out
}

func (i Images) statusCounts() bool {
	if i.Status || i.After == nil {
		return i.Status
	}
	_, there := i.After.Object["status"]
	return there
}

// Outcome returns what is kept of an object that a dry run has made from before: Strip
// of it, and the status where the change altered that. A status that it removed is
// kept as null. Where the status is a subresource no change alters it: if it is another,
// a controller has written it between the read and the dry run.
func Outcome(before, after *unstructured.Unstructured) *unstructured.Unstructured {
	out := Strip(after)
	var was any
	if before != nil {
		was = before.Object["status"]
	}
	is := after.Object["status"]
	apart := StatusApart(before) || StatusApart(after)
	if Custom(after.GroupVersionKind().GroupKind()) && !apart && !reflect.DeepEqual(was, is) {
		out.Object["status"] = runtime.DeepCopyJSONValue(is)
	}
	return out
}

// StatusApart reports whether another client has written the status of an object through the
// subresource for it.
func StatusApart(obj *unstructured.Unstructured) bool {
	return obj != nil && slices.ContainsFunc(obj.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource == "status" })
}
