package v1alpha1

import "k8s.io/apimachinery/pkg/types"

// BeforeImage says where a before-image is kept and what it must be.
type BeforeImage struct {
	// key is the key of its first part in the objects of status.rollbackRef.
	//
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`

	// digest is the SHA-256 of the stored record, which is kept with a nonce if it is
	// confidential. What is restored is checked against it first.
	//
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest"`

	// uid is that of the target; empty when it did not exist.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	UID types.UID `json:"uid,omitempty"`

	// resourceVersion is that of the target; empty when it did not exist.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ResourceVersion string `json:"resourceVersion,omitempty"`

	// unchanged is true when the change would leave the target as it is, its field owners
	// too. As long as it is that, nothing is written.
	//
	// +optional
	Unchanged bool `json:"unchanged,omitempty"`

	// after is a digest of the content that the dry run of the change gave the target, if the
	// Transaction is to be remembered: the same for content that means the same. It is empty
	// where that is not known, and for confidential content.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	After string `json:"after,omitempty"`
}
