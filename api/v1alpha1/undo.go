package v1alpha1

import "k8s.io/apimachinery/pkg/types"

// UndoOf names a Transaction of the same namespace that is remembered, or all that have changed
// something since one. Of one that has failed with onFailure Continue, what is in effect is undone.
//
// +kubebuilder:validation:XValidation:rule="[has(self.revision), has(self.name), has(self.toRevision)].filter(x, x).size() == 1",message="name what to undo by revision, by name or by toRevision, and by one of them alone"
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

	// toRevision undoes all in the namespace that have a higher number and changes in effect, the
	// newest first, as one Transaction: each of their targets gets the state that it had
	// before the first of them that changed it. With 0, everything that is remembered is
	// undone. It fails before anything is changed if one of them is not remembered or has
	// not ended, or if another client has changed one of the fields since or in between.
	// Transactions that were rolled back, and those that wrote nothing, are passed over.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ToRevision *int64 `json:"toRevision,omitempty"`

	// acceptLoss is the acceptLoss of every change that follows from undoOf, such as
	// the deletion of a Namespace that the Transaction has created.
	//
	// +optional
	AcceptLoss bool `json:"acceptLoss,omitempty"`
}

// MaxUndone is how many Transactions one undo undoes.
const MaxUndone = 200

// Undoing is what an undo has found to be undone: one Transaction, or with toRevision several, of
// which it is the newest.
type Undoing struct {
	UndoneRevision `json:",inline"`

	// earlier are the others, if spec.undoOf has toRevision, the newest first.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=199
	// +listType=atomic
	Earlier []UndoneRevision `json:"earlier,omitempty"`
}

// All are the Transactions that are undone, the newest first.
func (u *Undoing) All() []UndoneRevision {
	return append([]UndoneRevision{u.UndoneRevision}, u.Earlier...)
}

// UndoneRevision is a Transaction that is undone.
type UndoneRevision struct {
	// name is the name of the Transaction.
	//
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid is the uid of the Transaction: another of its name is not meant.
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
