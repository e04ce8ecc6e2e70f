package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// Change is one entry of spec.changes: what to do, to which object, and with
// what content.
//
// +kubebuilder:validation:XValidation:rule="self.type in ['Delete', 'Await'] ? !has(self.content) && !has(self.contentFrom) : has(self.release) || has(self.content) != has(self.contentFrom)",message="content is demanded for Create, Update and Patch, or contentFrom in its place, and has no meaning for Delete and Await"
// +kubebuilder:validation:XValidation:rule="!has(self.release) || self.type == 'Patch' && !has(self.content) && !has(self.contentFrom)",message="release has a meaning for Patch alone, in place of content"
// +kubebuilder:validation:XValidation:rule="self.type != 'Await' || has(self.readyWhen)",message="an Await needs readyWhen: what to wait for"
// +kubebuilder:validation:XValidation:rule="!has(self.failWhen) || has(self.readyWhen) || has(self.goneWhen)",message="failWhen has a meaning only beside readyWhen or goneWhen: it ends their wait"
// +kubebuilder:validation:XValidation:rule="!has(self.force) || self.type == 'Patch'",message="force has a meaning for Patch alone"
// +kubebuilder:validation:XValidation:rule="!has(self.propagationPolicy) || self.type == 'Delete'",message="propagationPolicy has a meaning for Delete alone"
// +kubebuilder:validation:XValidation:rule="self.type == 'Delete' ? !has(self.readyWhen) : !has(self.goneWhen)",message="goneWhen has a meaning for Delete alone, and readyWhen for the others"
// +kubebuilder:validation:XValidation:rule="!has(self.acceptLoss) || !(self.type in ['Create', 'Await']) || self.type == 'Create' && has(self.whenFalse) && self.whenFalse == 'Delete'",message="acceptLoss has no meaning for Create, which is rolled back by a deletion, and for Await, which changes nothing"
// +kubebuilder:validation:XValidation:rule="!has(self.whenFalse) || has(self.when)",message="whenFalse has a meaning only beside when"
// +kubebuilder:validation:XValidation:rule="!has(self.whenFalse) || !(self.type in ['Delete', 'Await'])",message="whenFalse has a meaning for Create, Update and Patch alone: a Delete or an Await whose when is false is skipped"
// +kubebuilder:validation:XValidation:rule="!has(self.guard) || !self.guard || self.type == 'Await'",message="guard has a meaning for Await alone"
// +kubebuilder:validation:XValidation:rule="!has(self.rollback) || !(self.type in ['Create', 'Await'])",message="rollback has no meaning for Create, whose rollback waits until the object is gone, and for Await, which changes nothing"
type Change struct {
	// name identifies the change in status, events and logs; unique within the
	// Transaction. The default is its position in the list, counted from 0.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// target is the object to change.
	Target Target `json:"target"`

	// type is what to do with the target. Create makes it and fails if it exists; it
	// gets the label janus.io/transaction, with the name of the Transaction.
	// Update replaces it by content. Patch sets the fields that content names, by
	// server-side apply, and takes them from the managers that own them. Delete removes
	// it, and is done if it does not exist. Await changes nothing: it waits until readyWhen
	// holds, for an object that need not exist yet, nor its kind be served.
	Type ChangeType `json:"type"`

	// content is the object for Create and Update, and the fields to set for
	// Patch. apiVersion, kind, metadata.name and metadata.namespace may be left
	// out: they are those of the target. Unknown fields are an error.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Content *runtime.RawExtension `json:"content,omitempty"`

	// contentFrom names the key of a Secret or a ConfigMap that holds the content, in
	// place of content: for content that is too large for the Transaction, or that may not
	// be read by everybody who may read the Transaction. It is read before the first change, so
	// no change that comes before this one may be of that Secret or ConfigMap.
	//
	// +optional
	ContentFrom *ContentSource `json:"contentFrom,omitempty"`

	// release, in place of the content of a Patch, changes no value: once the Transaction
	// has committed, the field managers that it names own these fields no more. What nobody
	// else owns goes to spec.fieldManager, or to nobody. It is for what kubectl patch, edit or
	// scale has taken from a tool, whose server-side apply meets a conflict since. No earlier
	// change may be of the same target.
	//
	// +optional
	Release *Release `json:"release,omitempty"`

	// force says whether a Patch takes fields from other field managers (the
	// default, true; status.items lists what was taken from whom). With false a
	// field that another manager owns with another value makes the change fail,
	// and the message names manager and field.
	//
	// +optional
	Force *bool `json:"force,omitempty"`

	// propagationPolicy says what a Delete does with the objects that the target
	// owns: Background (the default) and Foreground delete them too, Foreground
	// first of all; Orphan leaves them. A Deployment that was deleted with Orphan
	// and is re-created by a rollback takes its ReplicaSets and Pods again, and
	// nothing restarts; with the other two its Pods are new.
	//
	// +optional
	PropagationPolicy Propagation `json:"propagationPolicy,omitempty"`

	// acceptLoss allows a change that could not be rolled back completely, such as
	// the deletion of a Namespace or of a Job, or setting immutable on a
	// ConfigMap. Without it such a change is refused before anything is done. A
	// rollback then restores what it can, and the message of the item says what is lost.
	// Of a change with whenFalse Delete it also allows the deletions that it brings about.
	//
	// +optional
	AcceptLoss bool `json:"acceptLoss,omitempty"`

	// dependsOn names the changes that must be done before this one is begun: made,
	// and ready if they have readyWhen or goneWhen. A change is rolled back before
	// those that it depends on, and skipped if one of them is. If it cannot be rolled
	// back, they stay in effect too, with reason Blocked. Once any change has
	// dependsOn the list is no order any more, but for changes of the same object and
	// for objects of a kind or namespace that an earlier change creates.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	DependsOn []string `json:"dependsOn,omitempty"`

	// when is a CEL expression that is asked before the change is made; if it is false
	// the change is skipped, or what whenFalse says is done. object is the target, and objects has the targets of
	// other changes by their name, such as objects.database; what does not exist is
	// null. An expression that cannot be evaluated ends the Transaction.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	When string `json:"when,omitempty"`

	// whenFalse says what is done with the target if when is false. Skip (the default) leaves
	// it as it is. Delete deletes it, as a Delete would; before that, the targets of the
	// changes that depend on this one are deleted, in reverse order. Those changes are the
	// ones that name it in dependsOn, that change its target later, that are of a kind or in
	// a namespace that it creates, and in a list those whose content refers to its target;
	// and what depends on them. Of these, a Delete or an Await is skipped. What does not exist
	// is skipped too.
	//
	// +optional
	WhenFalse WhenFalse `json:"whenFalse,omitempty"`

	// readyWhen says when a Create, Update or Patch is done. Without it that is so once
	// the API server has accepted it. For Await it says what to wait for.
	//
	// +optional
	ReadyWhen *ReadyWhen `json:"readyWhen,omitempty"`

	// goneWhen says when a Delete is done. Without it that is so once no object with
	// the uid of the target is left.
	//
	// +optional
	GoneWhen *GoneWhen `json:"goneWhen,omitempty"`

	// failWhen ends the wait of readyWhen or goneWhen at once, as failed, and has
	// everything rolled back.
	//
	// +optional
	FailWhen *FailWhen `json:"failWhen,omitempty"`

	// guard makes an Await a condition of the whole Transaction. Once readyWhen has been found
	// to hold, it must hold again, of the same object, right before the first change is begun
	// and right before the Transaction is committed; otherwise all is rolled back, with
	// reason GuardBroken. The object is locked from the beginning to the end, by a lock that
	// guards of other Transactions share, and its kind must be served when the Transaction begins.
	//
	// +optional
	Guard bool `json:"guard,omitempty"`

	// rollback says what belongs to the rollback of the change, and to its undo.
	//
	// +optional
	Rollback *ChangeRollback `json:"rollback,omitempty"`

	// activation makes the change only if the cluster serves a kind. Otherwise the change
	// is skipped, and its target may be of a kind that nobody knows. It is decided when the
	// Transaction begins, or in the turn of the change if an earlier change of the
	// Transaction is of a CustomResourceDefinition or an APIService that may decide it.
	//
	// +optional
	Activation *Activation `json:"activation,omitempty"`
}

// Release says which field managers own which fields of a target no more.
type Release struct {
	// managers are the field managers that give fields up, such as kubectl-patch: what
	// they own by any subresource but status, in the version of the target. What
	// spec.fieldManager has applied it keeps, even if it is among them.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=set
	Managers []string `json:"managers"`

	// fields are the fields that they give up, as kubectl janus owners shows them, with
	// all that is inside: .spec.replicas, or .spec.template.spec.containers[name="web"].
	// Without any it is all that they own.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:Pattern=`^\..`
	// +listType=set
	Fields []string `json:"fields,omitempty"`
}

// ContentSource names a key that holds the content of a change, in the namespace of the
// Transaction: one object as JSON or YAML, plain or compressed by gzip.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretKeyRef) != has(self.configMapKeyRef)",message="contentFrom takes either secretKeyRef or configMapKeyRef"
type ContentSource struct {
	// secretKeyRef is a key of a Secret. Its content is confidential, whatever the kind of
	// the target is: no value of it appears in plan, status, events, logs or messages, and
	// the before-image is kept in a Secret.
	//
	// +optional
	SecretKeyRef *ContentKey `json:"secretKeyRef,omitempty"`

	// configMapKeyRef is a key of a ConfigMap, of data or of binaryData.
	//
	// +optional
	ConfigMapKeyRef *ContentKey `json:"configMapKeyRef,omitempty"`

	// digest is the SHA-256 of the bytes that the key must hold, as sha256: and 64
	// hexadecimal digits. Without it they are whatever the key holds when the Transaction
	// is accepted. Either way what they are then is recorded, and nothing else is applied
	// later. The digest of a short value tells the value: leave it out for a Secret whose
	// content can be guessed.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`
}

// ContentKey is a key of a Secret or a ConfigMap. The ServiceAccount of the Transaction
// needs get on it, unless kubectl janus run has stored it for this Transaction.
type ContentKey struct {
	// name is the name of the Secret or the ConfigMap.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// key is the key of its data that holds the content.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// Confidential reports whether the content is kept in a Secret.
func (s *ContentSource) Confidential() bool { return s != nil && s.SecretKeyRef != nil }

// Ref is the key, whichever kind of object it is of; without one it is empty.
func (s *ContentSource) Ref() ContentKey {
	switch {
	case s.SecretKeyRef != nil:
		return *s.SecretKeyRef
	case s.ConfigMapKeyRef != nil:
		return *s.ConfigMapKeyRef
	default:
		return ContentKey{}
	}
}

// String names the key, such as key app.yaml of ConfigMap sources.
func (s *ContentSource) String() string {
	kind := "ConfigMap"
	if s.Confidential() {
		kind = "Secret"
	}
	return "key " + s.Ref().Key + " of " + kind + " " + s.Ref().Name
}

// WhenFalse says what is done with the target of a change whose when is false.
//
// +kubebuilder:validation:Enum=Skip;Delete
type WhenFalse string

const (
	// WhenFalseSkip leaves it as it is.
	WhenFalseSkip WhenFalse = "Skip"
	// WhenFalseDelete deletes it, and before it what depends on it.
	WhenFalseDelete WhenFalse = "Delete"
)

// Propagation says what a Delete does with the objects that its target owns.
//
// +kubebuilder:validation:Enum=Background;Foreground;Orphan
type Propagation string

const (
	// PropagateBackground deletes them after the target.
	PropagateBackground Propagation = "Background"
	// PropagateForeground deletes them before the target.
	PropagateForeground Propagation = "Foreground"
	// PropagateOrphan leaves them.
	PropagateOrphan Propagation = "Orphan"
)

// ChangeType is what to do with a target.
//
// +kubebuilder:validation:Enum=Create;Update;Patch;Delete;Await
type ChangeType string

const (
	// Create makes the target; it must not exist.
	Create ChangeType = "Create"
	// Update replaces the target.
	Update ChangeType = "Update"
	// Patch sets the named fields of the target by server-side apply.
	Patch ChangeType = "Patch"
	// Delete removes the target.
	Delete ChangeType = "Delete"
	// Await waits for the target, and changes nothing.
	Await ChangeType = "Await"
)

// Target names one object.
type Target struct {
	// apiVersion is the group and version of the target, such as v1 or apps/v1.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	APIVersion string `json:"apiVersion"`

	// kind is the kind of the target, such as ConfigMap.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Kind string `json:"kind"`

	// name is the name of the target. Kinds differ in what they allow; none
	// allows a slash or a percent sign, and Janus no control characters, which
	// would reach logs and terminals.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^/%\x00-\x1f\x7f]+$`
	Name string `json:"name"`

	// namespace is the namespace of the target. The default is the namespace of
	// the Transaction; leave it out for a cluster-scoped kind.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Namespace string `json:"namespace,omitempty"`
}
