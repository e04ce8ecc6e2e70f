package v1alpha1

// Plan is what a change would do to its target, as it was when it was tried.
type Plan struct {
	// effect is what would become of the target: Create, Change or Delete; None if
	// it would stay as it is, such as by an Await; Deferred if that can be told only once an
	// earlier change of the Transaction is in effect.
	Effect PlanEffect `json:"effect"`

	// deferred says which earlier change the item waits for, and why it could not be
	// tried.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Deferred string `json:"deferred,omitempty"`

	// fields are those that would get another value, or go. The first of them are
	// listed. items[].taken says whom the change takes fields from.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Fields []FieldChange `json:"fields,omitempty"`

	// more counts the fields that are not listed.
	//
	// +optional
	More int64 `json:"more,omitempty"`

	// digest is the SHA-256 of the object that the change meets and of all that it would do
	// to it, if spec.approval demands an approval. Of a confidential object it has the
	// resourceVersion in place of values.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest,omitempty"`
}

// PlanEffect is what would become of a target.
//
// +kubebuilder:validation:Enum=Create;Change;Delete;None;Deferred
type PlanEffect string

const (
	// EffectCreate makes the target.
	EffectCreate PlanEffect = "Create"
	// EffectChange gives fields of the target other values.
	EffectChange PlanEffect = "Change"
	// EffectDelete removes the target.
	EffectDelete PlanEffect = "Delete"
	// EffectNone leaves the target as it is.
	EffectNone PlanEffect = "None"
	// EffectDeferred is not known yet.
	EffectDeferred PlanEffect = "Deferred"
)

// FieldChange is a field that would get another value.
type FieldChange struct {
	// field is the path, such as .spec.replicas.
	//
	// +kubebuilder:validation:MaxLength=512
	Field string `json:"field"`

	// before is the value that the field has, as JSON, cut to fit; empty if it has
	// none. For kinds whose content is confidential it is "*** (before)", whatever
	// the value is.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Before string `json:"before,omitempty"`

	// after is the value that it would have, in the same form; empty if the field
	// would go, and "*** (after)" for kinds whose content is confidential.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	After string `json:"after,omitempty"`
}
