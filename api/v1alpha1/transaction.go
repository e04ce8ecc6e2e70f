package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Finalizer keeps a Transaction that is being deleted until its locks are
// released and, where it asks for that, its changes are rolled back.
const Finalizer = "backup.janus.io/lease-cleanup"

// Transaction makes an ordered list of changes to Kubernetes objects together
// or not at all: if one change fails, those that landed are compensated in
// reverse order. Every read and write of a target is made as the ServiceAccount
// that spec.serviceAccountName names. Others can see the states in between, and
// a compensation can itself fail: the Transaction then ends Failed and says
// which item, which object and why.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=txn,categories=janus
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:selectablefield:JSONPath=`.spec.serviceAccountName`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="SA",type=string,priority=1,JSONPath=`.spec.serviceAccountName`
// +kubebuilder:printcolumn:name="Failed-Item",type=string,priority=1,JSONPath=`.status.failedItem`
// +kubebuilder:printcolumn:name="Duration",type=string,priority=1,JSONPath=`.status.duration`
// +kubebuilder:printcolumn:name="Revision",type=integer,priority=1,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Transaction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is to be changed, and as whom. But for suspend and cancel it
	// cannot be changed once the Transaction exists: create another instead.
	//
	// +kubebuilder:validation:XValidation:rule="has(self.ttlSecondsAfterFinished) == has(oldSelf.ttlSecondsAfterFinished)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="has(self.revisionHistoryLimit) == has(oldSelf.revisionHistoryLimit)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="(has(self.dryRun) && self.dryRun) == (has(oldSelf.dryRun) && oldSelf.dryRun)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="has(self.parallelism) == has(oldSelf.parallelism)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="has(self.retryLimit) == has(oldSelf.retryLimit)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="has(self.changesPerMinute) == has(oldSelf.changesPerMinute)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="has(self.undoOf) == has(oldSelf.undoOf)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="has(self.changes) != has(self.undoOf)",message="a Transaction has changes, or undoOf in place of them"
	Spec TransactionSpec `json:"spec"`

	// status is what Janus has done so far. It is also the journal from which
	// Janus resumes after a crash: do not edit it.
	//
	// +optional
	// +default={"observedGeneration": -1}
	Status TransactionStatus `json:"status,omitempty"`
}

// TransactionList is a list of Transactions.
//
// +kubebuilder:object:root=true
type TransactionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Transaction `json:"items"`
}

// TransactionSpec is what is to be changed, and as whom.
type TransactionSpec struct {
	// serviceAccountName is the ServiceAccount, in the namespace of the
	// Transaction, as which every target is read, changed and restored. It needs
	// get on each target, the verb of the change (create, update, patch or
	// delete) and that of its compensation (delete for a Create, create and patch
	// for a Delete, patch for an Update or Patch). It cannot be the
	// ServiceAccount of Janus itself.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	ServiceAccountName string `json:"serviceAccountName"`

	// Every field but suspend and cancel has a rule that it stays as it is. One rule for
	// all of them would be beyond the API server's budget.

	// Why the rule on changes is written as it is:
	// a map has no entry for a key that it has already: building one is the only
	// test of uniqueness whose cost grows with the list and not with its square,
	// and so the only one within the API server's budget for 1000 changes.

	// changes are made in the order of this list, each when the one before it is done,
	// and compensated in the reverse order. If any of them has dependsOn, that gives
	// the order instead. A Delete is the change that is hardest to take back: last is
	// best. One Transaction has at most 1000 changes, and no two of them may have the
	// same name. It is left out with undoOf.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:XValidation:rule="self.transformMapEntry(i, c, {has(c.name) ? c.name : string(i): i}).size() == self.size()",message="the name of a change must be unique; the default is its position in the list"
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	Changes []Change `json:"changes,omitempty"`

	// undoOf makes the Transaction undo another that has committed and is remembered.
	// Its changes are taken back in the reverse order, each as a change of this
	// Transaction, which is locked, recorded, rolled back and remembered like any
	// other: what was created is deleted, what was deleted is created again, and the
	// fields that were set get the values that they had. If somebody has changed one
	// of them since, it fails before anything is changed and names them all; with
	// conflictPolicy Force they are set all the same.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	UndoOf *UndoOf `json:"undoOf,omitempty"`

	// lockTimeout is how long the lock of a target outlives the last sign of life
	// of the Transaction that holds it, as a duration such as 90s or 5m. Locks
	// are renewed while the Transaction runs, so this bounds only how long others
	// wait after a crash. At least 1s, at most 24h.
	//
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a duration from 1s to 24h, such as 90s, 5m or 1h30m"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	LockTimeout *Duration `json:"lockTimeout,omitempty"`

	// timeout is how long the changes may take in all, waiting for locks
	// included, as a duration such as 30m. What has landed when it ends is rolled
	// back; the rollback then has the same time again. At least 1s, at most 168h.
	//
	// +optional
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="must be a duration from 1s to 168h, such as 90s, 5m or 1h30m"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	Timeout *Duration `json:"timeout,omitempty"`

	// onDelete says what deleting the Transaction while it runs means: Release
	// (the default) stops, releases the locks and leaves the changes made so far;
	// Rollback takes them back first.
	//
	// +optional
	// +kubebuilder:default=Release
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	OnDelete DeletePolicy `json:"onDelete,omitempty"`

	// conflictPolicy says what a rollback does with a field of a change that
	// somebody else has written since: Fail (the default) keeps their value, takes
	// back everything else, and ends Failed; Force gives the field its old value
	// all the same. Either way status.items lists the fields and who wrote them. A
	// field that its former owner has taken again, such as the replicas of an
	// autoscaler, is kept and is no conflict.
	//
	// +optional
	// +kubebuilder:default=Fail
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`

	// ttlSecondsAfterFinished is how many seconds after its end a Transaction is
	// deleted, and its before-images with it. Without it, it stays until somebody
	// deletes it. One with changes that could not be taken back, or were left by
	// cancel, stays too: its before-images may be wanted.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// revisionHistoryLimit is how many committed Transactions of the namespace are
	// remembered once this one has committed, itself included, so that they can be
	// undone. Each is given a number, a ControllerRevision, and keeps its
	// before-images; what is older loses the last two, and stays. Without it, or with
	// 0, the Transaction is not remembered and the others are left alone. What is
	// remembered goes when its Transaction is deleted.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// dryRun makes a plan and changes nothing: every change is tried without effect, no
	// lock is taken, and the Transaction ends Planned if nothing stands in the way of
	// its changes, else Failed. status.items[].plan says what each change would do.
	// Create the same Transaction under another name and without dryRun to make them.
	//
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// parallelism is how many changes may be under way at once if changes have
	// dependsOn: made, and not yet ready in the sense of readyWhen and goneWhen.
	// Requests are sent one after the other. The default is 10.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	Parallelism *int32 `json:"parallelism,omitempty"`

	// retryLimit is how many attempts may fail with errors that may heal, such as a busy
	// API server, an admission webhook that is down, or somebody else's write that came
	// between, before the Transaction stops and takes back what has landed. The wait
	// between two attempts grows from a tenth of a second to half a minute, and up to half
	// as much is added. Without retryLimit timeout alone decides, and it alone bounds a
	// rollback. What is waited for, such as a lock, is no failed attempt.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	RetryLimit *int32 `json:"retryLimit,omitempty"`

	// changesPerMinute is how many changes are begun within a minute at most, evenly
	// spread: with 6, one every ten seconds. Compensations are not held up. Without it
	// the next change is begun as soon as the ones before it allow.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=6000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	ChangesPerMinute *int32 `json:"changesPerMinute,omitempty"`

	// suspend stops the Transaction where it is: the change or the compensation in
	// hand is finished, no further one is begun, and the locks stay held. With false
	// again it goes on, and the time between does not count towards timeout. A
	// Transaction that is created suspended takes no lock and changes nothing. It can
	// be set at any time, and has no effect once cancel is set or the Transaction is
	// being deleted.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// cancel ends the Transaction before all changes are made. Rollback takes back
	// what has landed. Stop leaves it as it is, and ends a rollback too: the
	// Transaction is Failed then, status.items says what is in effect, and the
	// before-images are kept, so that Rollback can be set later. It can be set, and
	// changed, at any time; once the Transaction is Committed it has no effect.
	//
	// +optional
	Cancel CancelPolicy `json:"cancel,omitempty"`
}

// Duration is a length of time written as Go writes it, such as 90s, 5m or 1h30m.
// It is kept as the user wrote it, so that a write by Janus never rewrites it.
// The fields of this type state their own bounds.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
type Duration string

// DeletePolicy says what deleting a running Transaction does to its changes.
//
// +kubebuilder:validation:Enum=Release;Rollback
type DeletePolicy string

const (
	// DeleteRelease stops and leaves the changes that were made.
	DeleteRelease DeletePolicy = "Release"
	// DeleteRollback compensates the changes that were made.
	DeleteRollback DeletePolicy = "Rollback"
)

// CancelPolicy says what becomes of the changes of a Transaction that is cancelled.
//
// +kubebuilder:validation:Enum=Rollback;Stop
type CancelPolicy string

const (
	// CancelRollback takes the changes that were made back.
	CancelRollback CancelPolicy = "Rollback"
	// CancelStop leaves them.
	CancelStop CancelPolicy = "Stop"
)

// ConflictPolicy says what a rollback does with fields that others have written.
//
// +kubebuilder:validation:Enum=Fail;Force
type ConflictPolicy string

const (
	// ConflictFail keeps their values and ends Failed.
	ConflictFail ConflictPolicy = "Fail"
	// ConflictForce restores the old values and says what was overwritten.
	ConflictForce ConflictPolicy = "Force"
)

// Change is one entry of spec.changes: what to do, to which object, and with
// what content.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'Delete' ? !has(self.content) : has(self.content)",message="content is demanded for Create, Update and Patch, and has no meaning for Delete"
// +kubebuilder:validation:XValidation:rule="!has(self.force) || self.type == 'Patch'",message="force has a meaning for Patch alone"
// +kubebuilder:validation:XValidation:rule="!has(self.propagationPolicy) || self.type == 'Delete'",message="propagationPolicy has a meaning for Delete alone"
// +kubebuilder:validation:XValidation:rule="self.type == 'Delete' ? !has(self.readyWhen) : !has(self.goneWhen)",message="goneWhen has a meaning for Delete alone, and readyWhen for the others"
// +kubebuilder:validation:XValidation:rule="!has(self.acceptLoss) || self.type != 'Create'",message="acceptLoss has no meaning for Create, which can always be taken back"
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
	// server-side apply, and takes them from whoever owns them. Delete removes
	// it, and is done if it does not exist.
	Type ChangeType `json:"type"`

	// content is the object for Create and Update, and the fields to set for
	// Patch. apiVersion, kind, metadata.name and metadata.namespace may be left
	// out: they are those of the target. Unknown fields are an error.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Content *runtime.RawExtension `json:"content,omitempty"`

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

	// acceptLoss allows a change that could not be wholly taken back, such as the
	// deletion of a Namespace or of a Job, or setting immutable on a ConfigMap.
	// Without it such a change is refused before anything is done. A rollback then
	// restores what it can, and the message of the item says what is lost.
	//
	// +optional
	AcceptLoss bool `json:"acceptLoss,omitempty"`

	// dependsOn names the changes that must be done before this one is begun: made,
	// and ready if they have readyWhen or goneWhen. A change is taken back before
	// those that it depends on, and skipped if one of them is. Once any change has
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
	// the change is skipped. object is the target, and objects has the targets of
	// other changes by their name, such as objects.database; what does not exist is
	// null. An expression that cannot be evaluated ends the Transaction.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	When string `json:"when,omitempty"`

	// readyWhen says when a Create, Update or Patch is done. Without it that is so once
	// the API server has accepted it.
	//
	// +optional
	ReadyWhen *ReadyWhen `json:"readyWhen,omitempty"`

	// goneWhen says when a Delete is done. Without it that is so once no object with
	// the uid of the target is left.
	//
	// +optional
	GoneWhen *GoneWhen `json:"goneWhen,omitempty"`

	// activation makes the change only if the cluster serves a kind when the
	// Transaction begins. Otherwise the change is skipped, and its target may be of a
	// kind that nobody knows.
	//
	// +optional
	Activation *Activation `json:"activation,omitempty"`
}

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
// +kubebuilder:validation:Enum=Create;Update;Patch;Delete
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
