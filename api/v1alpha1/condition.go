package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConditionResult is what a condition of a change was found to be.
type ConditionResult struct {
	// condition is the field of the change that has the condition.
	Condition ConditionName `json:"condition"`

	// holds says whether it held.
	Holds bool `json:"holds"`

	// time is when it was found to be so.
	Time metav1.Time `json:"time"`

	// message says what was missing, or what failWhen says of the failure. It has no content
	// of confidential objects.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// ConditionName is the field of a change that has a condition.
//
// +kubebuilder:validation:Enum=activation;when;readyWhen;goneWhen;failWhen;rollback.readyWhen
type ConditionName string

const (
	// ConditionActivation is activation.
	ConditionActivation ConditionName = "activation"
	// ConditionWhen is when.
	ConditionWhen ConditionName = "when"
	// ConditionReadyWhen is readyWhen.
	ConditionReadyWhen ConditionName = "readyWhen"
	// ConditionGoneWhen is goneWhen.
	ConditionGoneWhen ConditionName = "goneWhen"
	// ConditionFailWhen is failWhen.
	ConditionFailWhen ConditionName = "failWhen"
	// ConditionRollbackReadyWhen is rollback.readyWhen.
	ConditionRollbackReadyWhen ConditionName = "rollback.readyWhen"
)
