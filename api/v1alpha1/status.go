package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TransactionStatus is what Janus has done so far.
type TransactionStatus struct {
	// phase sums up where the Transaction is: Pending, Preparing, Prepared,
	// Committing, Committed, RollingBack, RolledBack, Planned or Failed. Committed,
	// RolledBack, Planned and Failed are final; wait for status.completionTime to
	// wait for any of them.
	//
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// version counts the status writes that Janus made as checkpoints.
	//
	// +optional
	Version int64 `json:"version,omitempty"`

	// observedGeneration is the generation of the spec that Janus has seen; -1
	// until it has seen the Transaction.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// specDigest is the SHA-256 of the spec that was accepted, but for suspend and
	// cancel.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	SpecDigest string `json:"specDigest,omitempty"`

	// progress is the number of changes in effect out of all, such as 3/5.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Progress string `json:"progress,omitempty"`

	// failedItem is the name of the first item that failed.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	FailedItem string `json:"failedItem,omitempty"`

	// startTime is when Janus first acted on the Transaction.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the Transaction reached a final phase.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// rollbackStartTime is when the compensation began, the last time it did.
	//
	// +optional
	RollbackStartTime *metav1.Time `json:"rollbackStartTime,omitempty"`

	// suspendTime is since when the Transaction is suspended.
	//
	// +optional
	SuspendTime *metav1.Time `json:"suspendTime,omitempty"`

	// suspendedSeconds is how long it has been suspended since startTime, the time
	// since suspendTime left out. Its timeout is that much later.
	//
	// +optional
	SuspendedSeconds int64 `json:"suspendedSeconds,omitempty"`

	// duration is the time from startTime to completionTime.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Duration string `json:"duration,omitempty"`

	// serviceAccountUID pins the ServiceAccount that the Transaction began with.
	// A deleted and re-created one is not used to go on, only to roll back.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	ServiceAccountUID types.UID `json:"serviceAccountUID,omitempty"`

	// rollbackRef names the objects that hold the before-images, in the namespace
	// of the Transaction. They are dropped on commit, unless it is remembered, and
	// when the Transaction fails before any change is made; after a rollback they are
	// kept for as long as the Transaction exists, and with a revision for as long as
	// that.
	//
	// +optional
	RollbackRef *RollbackRef `json:"rollbackRef,omitempty"`

	// undoing is the Transaction that spec.undoOf has been found to name.
	//
	// +optional
	Undoing *Undoing `json:"undoing,omitempty"`

	// revision is the number under which the Transaction is remembered once it has
	// committed, higher than those before it in the namespace. It is that of the
	// ControllerRevision janus-revision-NUMBER, which goes when others have taken its
	// place.
	//
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// revisionDigest is the SHA-256 of what that ControllerRevision says. It is
	// believed only if it is so.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	RevisionDigest string `json:"revisionDigest,omitempty"`

	// failures counts the attempts that have failed with errors that may heal. One is
	// counted when the status is next written: at once if spec.retryLimit is set.
	//
	// +optional
	Failures int32 `json:"failures,omitempty"`

	// recoveries counts how often a Failed Transaction was taken up again to roll
	// back what was left.
	//
	// +optional
	Recoveries int32 `json:"recoveries,omitempty"`

	// items is the progress of each change, in the order of spec.changes.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	Items []Item `json:"items,omitempty"`

	// conditions are Validated, Locked, Succeeded, Ready, Reconciling, Stalled and
	// RolledBack, and Suspended once the Transaction has been. Validated is True once
	// every change that can be tried before the others has been. Succeeded is Unknown
	// while the Transaction runs. Ready is True once it has committed, or is planned.
	// Stalled is True when it has ended otherwise.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Phase sums up where a Transaction is.
//
// +kubebuilder:validation:Enum=Pending;Preparing;Prepared;Committing;Committed;RollingBack;RolledBack;Planned;Failed
type Phase string

const (
	// PhasePending has not been validated yet. An empty phase means the same.
	PhasePending Phase = "Pending"
	// PhasePreparing takes the locks and saves the before-images.
	PhasePreparing Phase = "Preparing"
	// PhasePrepared holds all locks and before-images.
	PhasePrepared Phase = "Prepared"
	// PhaseCommitting makes the changes.
	PhaseCommitting Phase = "Committing"
	// PhaseCommitted has made every change. Final.
	PhaseCommitted Phase = "Committed"
	// PhaseRollingBack compensates the changes that landed.
	PhaseRollingBack Phase = "RollingBack"
	// PhaseRolledBack has compensated every change that landed. Final.
	PhaseRolledBack Phase = "RolledBack"
	// PhasePlanned has tried every change without effect, because spec.dryRun is
	// set, and nothing stands in their way. Final.
	PhasePlanned Phase = "Planned"
	// PhaseFailed has ended before any change was made, or could not compensate
	// every change that landed: status.items says which. Final, unless what
	// stood in the way can heal: then it goes back to RollingBack, a bounded
	// number of times.
	PhaseFailed Phase = "Failed"
)

// Terminal reports whether p is final.
func (p Phase) Terminal() bool {
	return p == PhaseCommitted || p == PhaseRolledBack || p == PhasePlanned || p == PhaseFailed
}

// RollbackRef names the objects that hold the before-images.
type RollbackRef struct {
	// name is that of the first ConfigMap; a Secret of the same name holds the
	// before-images of Secrets.
	//
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// objects lists every object that holds a part, as Kind/name.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:items:MaxLength=300
	// +listType=atomic
	Objects []string `json:"objects,omitempty"`
}

// Item is the progress of one change.
type Item struct {
	// name is that of the change, or its position in the list.
	//
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// target is the object of the change, with its namespace filled in.
	Target Target `json:"target"`

	// type is what is done with the target, if that follows from spec.undoOf. name is
	// then that of the item which is taken back.
	//
	// +optional
	Type ChangeType `json:"type,omitempty"`

	// resource is the plural under which the kind of the target is served.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource,omitempty"`

	// deferred is true when the kind or the namespace of the target is made by an
	// earlier change, so that the change cannot be tried before that.
	//
	// +optional
	Deferred bool `json:"deferred,omitempty"`

	// state is where the item is; prepared, committed and rolledBack follow from
	// it. Pending: nothing was done. Prepared: its before-image is saved.
	// Committing: its change may have been sent. Committed: its change is in
	// effect. Rejected: its change was refused and is not in effect. RollingBack:
	// its compensation may have been sent. RolledBack: its change has been taken
	// back. Unresolved: it could not be taken back; message says why. Skipped: it is
	// not made; reason and message say why.
	State ItemState `json:"state"`

	// prepared is true once the before-image is saved.
	Prepared bool `json:"prepared"`

	// committed is true while the change is in effect.
	Committed bool `json:"committed"`

	// rolledBack is true once the change has been taken back.
	RolledBack bool `json:"rolledBack"`

	// waitStartTime is since when the change is in effect, if it has readyWhen or
	// goneWhen.
	//
	// +optional
	WaitStartTime *metav1.Time `json:"waitStartTime,omitempty"`

	// readyTime is when readyWhen or goneWhen was found to hold.
	//
	// +optional
	ReadyTime *metav1.Time `json:"readyTime,omitempty"`

	// unsettled is true for an Unresolved item of which it is not known whether its
	// change is in effect: what stood in the way of taking it back stood in the way of
	// finding out, too.
	//
	// +optional
	Unsettled bool `json:"unsettled,omitempty"`

	// lockLease is the Lease, as namespace/name, that locks the target.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=320
	LockLease string `json:"lockLease,omitempty"`

	// reason is a word for why the item failed.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason,omitempty"`

	// message says what failed on which object, why, and what to do.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// before is the before-image: the target as it was when it was prepared.
	//
	// +optional
	Before *BeforeImage `json:"before,omitempty"`

	// createdUID is the uid of the object that a Create has made, if its answer has come:
	// a rollback knows the object by it, whatever others have written to it since.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	CreatedUID types.UID `json:"createdUID,omitempty"`

	// recreatedUID is the uid of the object that a rollback has made in place of the
	// one that the change deleted.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	RecreatedUID types.UID `json:"recreatedUID,omitempty"`

	// taken lists the fields that the change takes from other field managers. A
	// commit gives them back to those managers, with the new value; so does a
	// rollback, with the old one.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Taken []OwnedFields `json:"taken,omitempty"`

	// reclaimed lists the fields that a rollback left alone because a manager that
	// owned them before the change has written them again since.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Reclaimed []OwnedFields `json:"reclaimed,omitempty"`

	// conflicts lists the fields of the change that somebody else had written when
	// it was taken back. They kept that value, unless spec.conflictPolicy is Force:
	// then they were overwritten. At most the first 16 are listed; message counts
	// the others.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Conflicts []FieldConflict `json:"conflicts,omitempty"`

	// warnings say what is hard to take back about the change.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`

	// plan is what the change would do, if spec.dryRun is set.
	//
	// +optional
	Plan *Plan `json:"plan,omitempty"`
}

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

// FieldConflict is a field that a change wrote and somebody else has written since.
type FieldConflict struct {
	// field is the path, such as .spec.replicas.
	//
	// +kubebuilder:validation:MaxLength=512
	Field string `json:"field"`

	// managers own the field now; none if it was removed.
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

// BeforeImage says where a before-image is kept and what it must be.
type BeforeImage struct {
	// key is the key of its first part in the objects of status.rollbackRef.
	//
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`

	// digest is the SHA-256 of the stored record. What is restored is checked
	// against it first.
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
}

// ItemState is where an item is.
//
// +kubebuilder:validation:Enum=Pending;Prepared;Committing;Committed;Rejected;RollingBack;RolledBack;Unresolved;Skipped
type ItemState string

const (
	// ItemPending has nothing done and nothing saved.
	ItemPending ItemState = "Pending"
	// ItemPrepared has its before-image saved.
	ItemPrepared ItemState = "Prepared"
	// ItemCommitting has its intent recorded: its change may have been sent.
	ItemCommitting ItemState = "Committing"
	// ItemCommitted has its change in effect.
	ItemCommitted ItemState = "Committed"
	// ItemRejected had its change refused; it is known not to be in effect.
	ItemRejected ItemState = "Rejected"
	// ItemRollingBack may have had its compensation sent.
	ItemRollingBack ItemState = "RollingBack"
	// ItemRolledBack has its change taken back.
	ItemRolledBack ItemState = "RolledBack"
	// ItemUnresolved could not be taken back.
	ItemUnresolved ItemState = "Unresolved"
	// ItemSkipped is not made, because of its when, its activation, or a change that it
	// depends on.
	ItemSkipped ItemState = "Skipped"
)

// Condition types of a Transaction.
const (
	// ConditionValidated says whether every change that can be tried before the others
	// was accepted, before anything was done.
	ConditionValidated = "Validated"
	// ConditionLocked says whether all targets are locked.
	ConditionLocked = "Locked"
	// ConditionSucceeded is Unknown while the Transaction runs.
	ConditionSucceeded = "Succeeded"
	// ConditionReady is True once the Transaction has committed, or is planned.
	ConditionReady = "Ready"
	// ConditionReconciling is True while Janus works on the Transaction.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when the Transaction has ended without committing.
	ConditionStalled = "Stalled"
	// ConditionSuspended says whether the Transaction stands still because
	// spec.suspend is set.
	ConditionSuspended = "Suspended"
	// ConditionRolledBack says whether what landed has been taken back.
	ConditionRolledBack = "RolledBack"
)
