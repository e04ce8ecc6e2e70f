package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RollbackWait is the wait for a target after its compensation.
type RollbackWait struct {
	// startTime is since when the target is as it was before, or since when it is waited for
	// again.
	StartTime *metav1.Time `json:"startTime"`

	// holdStartTime is since when rollback.readyWhen has been found to hold, if it has holdFor.
	//
	// +optional
	HoldStartTime *metav1.Time `json:"holdStartTime,omitempty"`

	// readyTime is when rollback.readyWhen was found to hold, for as long as holdFor demands.
	//
	// +optional
	ReadyTime *metav1.Time `json:"readyTime,omitempty"`

	// reason is the one that the item had when it was restored, if it did not become ready. It
	// has it again when it is waited for again.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason,omitempty"`

	// message is the one that the item had when it was restored, in the same way.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}

// Restored reports whether the compensation of the item is on record as made: it is rolled back,
// or waited for, or did not become ready.
func (i *Item) Restored() bool { return i.State == ItemRolledBack || i.RollbackWait != nil }
