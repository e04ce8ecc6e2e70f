package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Finalizer keeps a Transaction that is being deleted until its locks are
// released and, where it asks for that, its changes are rolled back.
const Finalizer = "backup.janus.io/lease-cleanup"

// RecoverAnnotation on a Failed Transaction asks janusd to retry its failed compensations
// now. Each new value asks once.
const RecoverAnnotation = "backup.janus.io/recover"

// Transaction makes an ordered list of changes to Kubernetes objects together
// or not at all: if one change fails, those that landed are compensated in
// reverse order. Every read and write of a target is made as the ServiceAccount
// that spec.serviceAccountName names. Others can see the states in between, and
// a compensation can itself fail: the Transaction then ends Failed and says
// which item, which object and why.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="has(self.status) && has(oldSelf.status) && has(self.status.version) && (!has(oldSelf.status.version) || self.status.version != oldSelf.status.version) || !has(self.spec.changes) || !has(oldSelf.spec.changes) || self.spec.changes == oldSelf.spec.changes",message="spec is immutable but for suspend and cancel: create another Transaction instead",fieldPath=".spec.changes"
// +kubebuilder:resource:shortName=txn,categories=janus
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:selectablefield:JSONPath=`.spec.serviceAccountName`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="SA",type=string,priority=1,JSONPath=`.spec.serviceAccountName`
// +kubebuilder:printcolumn:name="Failed-Item",type=string,priority=1,JSONPath=`.status.failedItem`
// +kubebuilder:printcolumn:name="Duration",type=string,priority=1,JSONPath=`.status.duration`
// +kubebuilder:printcolumn:name="Revision",type=integer,priority=1,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Transaction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec lists the changes, and names the ServiceAccount that makes them. But
	// for suspend and cancel it cannot be changed once the Transaction exists:
	// create another instead.
	//
	// +kubebuilder:validation:XValidation:rule="has(self.ttlSecondsAfterFinished) == has(oldSelf.ttlSecondsAfterFinished)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="has(self.revisionHistoryLimit) == has(oldSelf.revisionHistoryLimit)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="(has(self.dryRun) && self.dryRun) == (has(oldSelf.dryRun) && oldSelf.dryRun)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="has(self.order) == has(oldSelf.order)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="has(self.parallelism) == has(oldSelf.parallelism)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="has(self.retryLimit) == has(oldSelf.retryLimit)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="has(self.changesPerMinute) == has(oldSelf.changesPerMinute)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="has(self.fieldManager) == has(oldSelf.fieldManager)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="has(self.approval) == has(oldSelf.approval)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="has(self.undoOf) == has(oldSelf.undoOf)",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	// +kubebuilder:validation:XValidation:rule="has(self.changes) != has(self.undoOf)",message="a Transaction has changes, or undoOf in place of them"
	// +kubebuilder:validation:XValidation:rule="!has(self.onFailure) || self.onFailure != 'Continue' || !has(self.changes) || !self.changes.exists(c, has(c.guard) && c.guard)",message="a broken guard rolls everything back: leave out onFailure Continue, or the guard"
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

// TransactionSpec lists the changes, and names the ServiceAccount that makes them.
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

	// Why the rules on changes are written as they are. A map has no entry for a key that
	// it has already: building one is the only test of uniqueness whose cost grows with the
	// list and not with its square, and so the only one within the API server's budget for
	// 1000 changes. What stays as it is need not be tested again. That it does not change
	// is a rule of the whole Transaction, which can tell a write of the status: only such a
	// write changes status.version, and it cannot change the spec. To compare 1000 changes
	// would take a fifth of the time of each.

	// changes are made in the order of this list, each when the one before it is done,
	// and compensated in the reverse order. If any of them has dependsOn, that gives
	// the order instead. A Delete is the change that is hardest to roll back: last is
	// best. One Transaction has at most 1000 changes, and no two of them may have the
	// same name. It is left out with undoOf.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.transformMapEntry(i, c, {has(c.name) ? c.name : string(i): i}).size() == self.size()",optionalOldSelf=true,message="the name of a change must be unique; the default is its position in the list"
	// +listType=atomic
	Changes []Change `json:"changes,omitempty"`

	// undoOf makes the Transaction undo another that is remembered, because it has committed or
	// has failed with changes in effect, or with toRevision all that have since.
	// Its changes are rolled back in the reverse order, each as a change of this
	// Transaction, which is locked, recorded, rolled back and remembered like any
	// other: what was created is deleted, what was deleted is created again, and the
	// fields that were set get the values that they had. If another client has changed one
	// of them since, it fails before anything is changed and names them all, but for
	// those of an object that had several changes: of these only what is undone first is
	// known by then. With conflictPolicy Force they are set all the same.
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
	// Rollback rolls them back first.
	//
	// +optional
	// +kubebuilder:default=Release
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	OnDelete DeletePolicy `json:"onDelete,omitempty"`

	// conflictPolicy says what a rollback does with a field of a change that
	// another client has written since: Fail (the default) keeps their value, rolls
	// back everything else, and ends Failed; Force gives the field its old value
	// all the same. Either way status.items lists the fields and who wrote them. A
	// field that its former owner has taken again, such as the replicas of an
	// autoscaler, is kept and is no conflict. Neither gives a field a value by which a
	// controller would destroy what cannot be made again.
	//
	// +optional
	// +kubebuilder:default=Fail
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`

	// fieldManager is the field manager to which a commit leaves the fields that the
	// changes set and that nobody owned before, as if it had applied them: that of the tool that
	// carries the objects on, such as a GitOps tool or the manager of a release. Its next
	// server-side apply of the same content meets no conflict, and what it names no more
	// then goes. Without fieldManager nobody owns these fields, and anyone who applies them
	// first does. Fields that had an owner before belong to it again either way. It cannot
	// be a name that Janus or the API server gives.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[!-~]([ -~]*[!-~])?$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['before-first-apply', 'ancient-changes']) && !self.matches('^janus-[0-9a-f]{8}-[0-9]+$')",message="must not be a name that Janus or the API server gives"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	FieldManager string `json:"fieldManager,omitempty"`

	// onFailure says what a change that fails does to the others. Rollback (the default): what
	// has landed is rolled back. Continue: all that does not depend on it is made, nothing is
	// rolled back, and the Transaction ends Failed; status.items says what was not made, and
	// why. A change depends on those that it names in dependsOn or refers to, on earlier changes
	// of the same object, and on the creation of its Namespace or CustomResourceDefinition.
	// When timeout or retryLimit is over, or a lock is lost, nothing further is begun, and what
	// is in effect stays. cancel and onDelete roll back all the same, until all that can be made
	// is made.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	OnFailure FailurePolicy `json:"onFailure,omitempty"`

	// ttlSecondsAfterFinished is how many seconds after its end a Transaction is
	// deleted, and its before-images with it. Without it, it stays until it is
	// deleted. One with changes that could not be rolled back, or were left by
	// cancel, stays too: its before-images may be wanted.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// revisionHistoryLimit is how many Transactions of the namespace that have changes in effect
	// are remembered once this one has committed, or failed in part with onFailure Continue, itself
	// included, so that they can be undone. Each is given a number, a ControllerRevision, and keeps its
	// before-images; what is older loses the last two, and stays. With 0 the
	// Transaction is not remembered and the others are left alone. The default is
	// janusd's, 10 unless its --revision-history-limit says otherwise. What is
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

	// approval has the Transaction stand with its plan until someone approves that. With
	// dryRun it has no effect.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	Approval *Approval `json:"approval,omitempty"`

	// order says what a change comes after. List: after the one before it in the
	// list. Graph: after those that it names in dependsOn, after earlier changes of the
	// same object, and after the creation of its Namespace or
	// CustomResourceDefinition; changes that need not wait for each other are made
	// side by side, and so is what they have changed restored. The default is Graph if
	// any change has dependsOn, else List.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	Order OrderPolicy `json:"order,omitempty"`

	// parallelism is how many changes may be under way at once where the order is a
	// Graph: sent and not answered, or made and not yet ready in the sense of readyWhen
	// and goneWhen. The default is 10.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	Parallelism *int32 `json:"parallelism,omitempty"`

	// retryLimit is how many attempts in a row may fail with errors that may heal, such as a
	// busy API server, an admission webhook that is down, or another client's write that
	// came between, before the Transaction stops and rolls back what has landed. The wait
	// between two attempts grows from a tenth of a second to half a minute, unless janusd is
	// told otherwise, and up to half as much is added. Without retryLimit timeout decides,
	// and 20 time-outs in a row of requests about the same object. Timeout alone bounds a
	// rollback. What is waited for, such as a lock, is no failed attempt.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	RetryLimit *int32 `json:"retryLimit,omitempty"`

	// changesPerMinute is how many changes are begun within a minute at most, evenly
	// spread: with 6, one every ten seconds. Compensations are not held up. Without it
	// the next change is begun as soon as the ones before it allow. A Transaction whose
	// changes cannot all be begun within timeout is refused.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=6000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable but for suspend and cancel: create another Transaction instead"
	ChangesPerMinute *int32 `json:"changesPerMinute,omitempty"`

	// suspend stops the Transaction where it is: the change or the compensation in
	// flight is finished, no further one is begun, and the locks stay held. With
	// false again it goes on, and the time between does not count towards timeout. A
	// Transaction that is created suspended takes no lock and changes nothing. It can
	// be set at any time, and has no effect once cancel is set or the Transaction is
	// being deleted. Anyone who may edit the Transaction may set it; to set it to false
	// again takes the right to have the ServiceAccount act.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// cancel ends the Transaction before all changes are made. Rollback rolls back
	// what has landed. Stop leaves it as it is, and ends a rollback too: the
	// Transaction is Failed then, status.items says what is in effect, and the
	// before-images are kept, so that Rollback can be set later. It can be set, and
	// changed, at any time; once the Transaction is Committed it has no effect.
	// Anyone who may edit the Transaction may set Stop; to set Rollback, or to remove
	// cancel, takes the right to have the ServiceAccount act.
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

// CancelPolicy says what happens to the changes of a Transaction that is cancelled.
//
// +kubebuilder:validation:Enum=Rollback;Stop
type CancelPolicy string

const (
	// CancelRollback rolls back the changes that were made.
	CancelRollback CancelPolicy = "Rollback"
	// CancelStop leaves them.
	CancelStop CancelPolicy = "Stop"
)

// FailurePolicy says what a change that fails does to the others.
//
// +kubebuilder:validation:Enum=Rollback;Continue
type FailurePolicy string

const (
	// FailureRollback has what has landed rolled back.
	FailureRollback FailurePolicy = "Rollback"
	// FailureContinue has all made that does not depend on the change.
	FailureContinue FailurePolicy = "Continue"
)

// OrderPolicy says what a change comes after.
//
// +kubebuilder:validation:Enum=List;Graph
type OrderPolicy string

const (
	// OrderList has each change come after the one before it in the list.
	OrderList OrderPolicy = "List"
	// OrderGraph has each change come after what it depends on.
	OrderGraph OrderPolicy = "Graph"
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
