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

	// progress is the number of changes in effect out of all, such as 3/5. An
	// Await counts when what it waits for is so.
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

	// guardTime is when all guards were found to hold after the last change. They are judged no
	// more after that, and the Transaction is committed.
	//
	// +optional
	GuardTime *metav1.Time `json:"guardTime,omitempty"`

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
	// of the Transaction. They are dropped on commit, or when the Transaction has failed in
	// part with onFailure Continue, unless it is remembered, and when it fails before any
	// change is made; after a rollback they are
	// kept for as long as the Transaction exists, and with a revision for as long as
	// that.
	//
	// +optional
	RollbackRef *RollbackRef `json:"rollbackRef,omitempty"`

	// approval is the plan that stands for approval, or was approved, if spec.approval asks for
	// that.
	//
	// +optional
	Approval *ApprovalStatus `json:"approval,omitempty"`

	// undoing is the Transaction that spec.undoOf has been found to name. With toRevision it is
	// the newest of several.
	//
	// +optional
	Undoing *Undoing `json:"undoing,omitempty"`

	// revision is the number of the Transaction, if its history limit is not 0. It is given
	// when the Transaction first holds its locks, is higher than all that were given in the
	// namespace before, and is never given again. If the Transaction is remembered, it is that of
	// the ControllerRevision janus-revision-NUMBER, which goes when others have taken its
	// place.
	//
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// revisionDigest is the SHA-256 of what that ControllerRevision says. It is
	// believed only if it is so. Without a digest, the Transaction is not remembered.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	RevisionDigest string `json:"revisionDigest,omitempty"`

	// failures counts the attempts that have failed in a row with errors that may heal. A
	// success sets it to 0. One is counted when the status is next written: at once if
	// spec.retryLimit is set.
	//
	// +optional
	Failures int32 `json:"failures,omitempty"`

	// timedOut is the object for which a request was not answered in time, and how often that
	// was so in a row. The API server has answered other requests in between. A success
	// removes it.
	//
	// +optional
	TimedOut *TimedOut `json:"timedOut,omitempty"`

	// recoveries counts how often a Failed Transaction was taken up again to roll
	// back what was left.
	//
	// +optional
	Recoveries int32 `json:"recoveries,omitempty"`

	// handledRecovery is the value of the annotation backup.janus.io/recover for which
	// what was left was last taken up again.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	HandledRecovery string `json:"handledRecovery,omitempty"`

	// items is the progress of each change, in the order of spec.changes.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	Items []Item `json:"items,omitempty"`

	// conditions are Validated, Locked, Succeeded, Ready, Reconciling, Stalled and
	// RolledBack, Suspended once the Transaction has been, and Approved if spec.approval
	// demands it. Validated is True once every change that can be tried before the others
	// has been. Succeeded is Unknown while the Transaction runs and nothing has failed. Ready
	// is True once it has committed, or is planned. Stalled is True when it has ended otherwise.
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
	// PhasePrepared holds all locks and before-images, and has not gone on at once.
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
	// PhaseFailed has ended before any change was made, could not compensate
	// every change that landed, or has left some unmade because onFailure is
	// Continue: status.items says which. Final, unless what
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
	// ConditionApproved says whether the plan is approved.
	ConditionApproved = "Approved"
	// ConditionRolledBack says whether what landed has been rolled back.
	ConditionRolledBack = "RolledBack"
)

// TimedOut counts time-outs of one object.
type TimedOut struct {
	// object is its kind, namespace and name, such as ConfigMap shop/app.
	//
	// +kubebuilder:validation:MaxLength=1024
	Object string `json:"object"`

	// attempts is how many attempts in a row have timed out.
	Attempts int32 `json:"attempts"`
}
