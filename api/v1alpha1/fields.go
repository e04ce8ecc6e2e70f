package v1alpha1

// OwnedFields are fields that a field manager owns.
type OwnedFields struct {
	// manager is the name of the field manager.
	//
	// +kubebuilder:validation:MaxLength=256
	Manager string `json:"manager"`

	// subresource is the subresource through which the manager wrote them, such as
	// scale; empty for the object itself.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Subresource string `json:"subresource,omitempty"`

	// fields are paths such as .spec.replicas. The first of them are listed.
	//
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	Fields []string `json:"fields"`

	// more counts the fields that are not listed.
	//
	// +optional
	More int64 `json:"more,omitempty"`
}

// FieldConflict is a field that stood in the way of a rollback.
type FieldConflict struct {
	// field is the path, such as .spec.replicas.
	//
	// +kubebuilder:validation:MaxLength=512
	Field string `json:"field"`

	// managers are the other clients that own the field now; none if it was removed, or if
	// it is none of theirs.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	Managers []string `json:"managers,omitempty"`

	// now is the value that was found, as JSON, cut to fit; empty if there is none,
	// and for kinds whose content is confidential.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Now string `json:"now,omitempty"`

	// before is the value that was to be restored, in the same form.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Before string `json:"before,omitempty"`
}
