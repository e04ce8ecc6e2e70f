package v1alpha1

// ReadyWhen says when a change is not only in effect but has done its work, such as
// when the Pods of a Deployment are available.
//
// +kubebuilder:validation:XValidation:rule="has(self.status) != has(self.expression)",message="needs either status or expression"
// +kubebuilder:validation:XValidation:rule="!has(self.holdFor) || !has(self.timeout) || duration(self.holdFor) < duration(self.timeout)",message="holdFor must be shorter than timeout"
type ReadyWhen struct {
	// status is Ready: the target says by its own status that it is, such as a Job that
	// has completed, or a Deployment whose Pods are all updated and available. What it
	// says that it cannot become, such as a Job that has failed, fails at once. An Await
	// also waits for a target that does not exist.
	//
	// +optional
	Status ReadyStatus `json:"status,omitempty"`

	// expression is a CEL expression that is true once the target is ready. object is
	// the target, and objects has the targets of other changes by their name, such as
	// objects.database; what does not exist is null. While a field that it asks for
	// is not there, the target is not ready.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression,omitempty"`

	// timeout is how long to wait, as a duration such as 90s or 5m, counted from
	// when the change was made. When it is over everything is rolled back. Without it
	// only spec.timeout ends the wait. At least 1s, at most 168h.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="must be a duration from 1s to 168h, such as 90s, 5m or 1h30m"
	Timeout *Duration `json:"timeout,omitempty"`

	// holdFor is how long the wait has to be over without a break before the change is
	// done, as a duration such as 30s or 5m. Janus looks every second. It must be shorter
	// than timeout. At least 1s, at most 168h.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="must be a duration from 1s to 168h, such as 90s, 5m or 1h30m"
	HoldFor *Duration `json:"holdFor,omitempty"`
}

// GoneWhen says when a Delete has done its work.
//
// +kubebuilder:validation:XValidation:rule="!has(self.holdFor) || !has(self.timeout) || duration(self.holdFor) < duration(self.timeout)",message="holdFor must be shorter than timeout"
type GoneWhen struct {
	// expression is a CEL expression that is true once what was deleted is gone as
	// far as it needs to be. It is asked from when no object with the uid of the target
	// is left. object is null, or an object of the same name that another client has made
	// since, and objects has the targets of other changes by their name.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression"`

	// timeout is how long to wait, as a duration such as 90s or 5m, counted from
	// when the target was gone. When it is over everything is rolled back. Without it
	// only spec.timeout ends the wait. At least 1s, at most 168h.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="must be a duration from 1s to 168h, such as 90s, 5m or 1h30m"
	Timeout *Duration `json:"timeout,omitempty"`

	// holdFor is how long the wait has to be over without a break before the change is
	// done, as a duration such as 30s or 5m. Janus looks every second. It must be shorter
	// than timeout. At least 1s, at most 168h.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="must be a duration from 1s to 168h, such as 90s, 5m or 1h30m"
	HoldFor *Duration `json:"holdFor,omitempty"`
}

// ChangeRollback says what belongs to the rollback of a change.
type ChangeRollback struct {
	// readyWhen says when the target works again, now that it is as it was before: in a
	// rollback, and in an undo of the Transaction. Until then no compensation that comes
	// after this one begins, and the Transaction does not end. The expression sees object,
	// and not objects. timeout counts from when the target was restored. A target that does
	// not become ready in a rollback ends Unresolved with reason RollbackNotReady: it is
	// restored, what it depends on stays in effect, and a recovery waits for it again. An
	// undo is rolled back instead.
	ReadyWhen ReadyWhen `json:"readyWhen"`
}

// FailWhen says when a wait has failed.
type FailWhen struct {
	// expression is a CEL expression that is true once what is waited for cannot come. It
	// sees what readyWhen sees, and is asked first. While a field that it asks for is not
	// there, the wait goes on.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression"`

	// messageExpression is a CEL expression whose text becomes the message of the item,
	// such as object.status.message. Without it, or if it cannot be evaluated, the message
	// quotes the expression. It is left out for objects whose content is confidential.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	MessageExpression string `json:"messageExpression,omitempty"`
}

// ReadyStatus is a status to wait for.
//
// +kubebuilder:validation:Enum=Ready
type ReadyStatus string

// StatusReady means that the target has done its work, as internal/readiness tells kind by kind.
const StatusReady ReadyStatus = "Ready"

// Activation is a condition on the kinds that a cluster may serve or not: one kind by its name, or
// an expression over all of them.
//
// +kubebuilder:validation:XValidation:rule="has(self.expression) ? !has(self.apiVersion) && !has(self.kind) : has(self.apiVersion) && has(self.kind)",message="needs either apiVersion and kind, or expression"
type Activation struct {
	// apiVersion is the group and version of the kind, such as monitoring.coreos.com/v1.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is the kind, such as ServiceMonitor.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Kind string `json:"kind,omitempty"`

	// expression is a CEL expression that is true if the change is to be made. kinds is the
	// list of the kinds that the cluster serves, one entry for each version, with the fields
	// group, version, kind, resource and namespaced, such as
	// kinds.exists(k, k.group == 'cert-manager.io' && k.kind == 'Certificate'). Nothing else
	// can be asked for. While an API that is registered does not answer, the expression is
	// not evaluated.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression,omitempty"`
}

// String says what is asked for.
func (a *Activation) String() string {
	if a.Expression != "" {
		return a.Expression
	}
	return a.APIVersion + " " + a.Kind
}
