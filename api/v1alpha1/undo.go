package v1alpha1

import "k8s.io/apimachinery/pkg/types"

// UndoOf names a committed Transaction of the same namespace that is remembered.
//
// +kubebuilder:validation:XValidation:rule="has(self.revision) != has(self.name)",message="name the Transaction to undo by its revision or by its name, and not by both"
type UndoOf struct {
	// revision is the status.revision of the Transaction to undo.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Revision *int64 `json:"revision,omitempty"`

	// name is the name of the Transaction to undo.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// acceptLoss is the acceptLoss of every change that follows from undoOf, such as
	// the deletion of a Namespace that the Transaction has created.
	//
	// +optional
	AcceptLoss bool `json:"acceptLoss,omitempty"`
}

// Undoing is what an undo has found to be undone.
type Undoing struct {
	// name is the name of the Transaction that is undone.
	//
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid is the uid of that Transaction: another of its name is not meant.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	UID types.UID `json:"uid"`

	// revision is the number under which it is remembered.
	Revision int64 `json:"revision"`

	// digest is the SHA-256 of what its ControllerRevision says. Nothing else is
	// undone.
	//
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest"`
}

// Derive gives a Transaction that undoes another the changes that follow from it: they
// are on record as its items, and without content, which is kept with the before-images.
// It leaves every other Transaction as it is.
func (t *Transaction) Derive() {
	if t.Spec.UndoOf == nil {
		return
	}
	t.Spec.Changes = nil
	for i := range t.Status.Items {
		item := &t.Status.Items[i]
		t.Spec.Changes = append(t.Spec.Changes, Change{
			Name: item.Name, Type: item.Type, Target: item.Target, AcceptLoss: t.Spec.UndoOf.AcceptLoss,
			ReadyWhen: item.ReadyWhen,
		})
	}
}

// Underive takes the changes off again that Derive gives. They are no part of what is
// stored.
func (t *Transaction) Underive() {
	if t.Spec.UndoOf != nil {
		t.Spec.Changes = nil
	}
}
