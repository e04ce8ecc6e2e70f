package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Item is the progress of one change.
type Item struct {
	// name is that of the change, or its position in the list.
	//
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// target is the object of the change, with its namespace filled in.
	Target Target `json:"target"`

	// type is what is done with the target, if that follows from spec.undoOf. name is
	// then that of the item which is rolled back; with toRevision, it is rREVISION-NAME of
	// the newest. It is Await for an item that waits and changes nothing, and Delete for one
	// that deletes its target because a when is false, its own or that of a change that it
	// depends on.
	//
	// +optional
	Type ChangeType `json:"type,omitempty"`

	// resource is the plural under which the kind of the target is served.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource,omitempty"`

	// confidential is true when the content of the change, or of the change that it
	// undoes, comes from a Secret: its values are kept out of plan, messages and logs.
	//
	// +optional
	Confidential bool `json:"confidential,omitempty"`

	// contentDigest pins what contentFrom held when the Transaction was accepted: its
	// SHA-256, for a Secret keyed with the uid of the Secret (HMAC). What does not have
	// it is not applied.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=80
	ContentDigest string `json:"contentDigest,omitempty"`

	// deferred is true when the kind or the namespace of the target is made by an
	// earlier change, so that the change cannot be tried before that.
	//
	// +optional
	Deferred bool `json:"deferred,omitempty"`

	// deferredBy names the last earlier change that may be the reason why the dry run of
	// this one was refused. It is retried when its turn comes, after all changes up to
	// that one.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	DeferredBy string `json:"deferredBy,omitempty"`

	// dependsOn names the earlier changes that this one depends on: those that dependsOn
	// names in the spec, and those whose targets the content or the expressions of this one
	// refer to. Of an undo they follow from the Transaction that is undone, the other way
	// round; and of an item that deletes its target because a when is false, they are those
	// that are deleted before it. What this change depends on is rolled back after it, and not before.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	DependsOn []string `json:"dependsOn,omitempty"`

	// deletedWith names the earlier changes with whenFalse Delete that this one depends on: if
	// the when of one of them is false, the target of this one is deleted before its own. A
	// Delete or an Await is skipped then.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	DeletedWith []string `json:"deletedWith,omitempty"`

	// state is where the item is; prepared, committed and rolledBack follow from
	// it. Pending: nothing was done. Prepared: its before-image is saved.
	// Committing: its change may have been sent. Committed: its change is in
	// effect. Rejected: its change was refused, or may have been sent, and is not in
	// effect. RollingBack: its compensation may have been sent, or was made and is waited
	// for. RolledBack: its change has been rolled back. Unresolved: it could not be rolled
	// back, or is not ready since, or it cannot be told whether it is in effect; message says
	// why. Skipped: it is not made; reason and message say why. An Await is Committed from when
	// its turn comes, and RolledBack once what it waits for does not matter any more.
	State ItemState `json:"state"`

	// missingVerbs are those that the ServiceAccount lacks on the target, of what making the
	// change and rolling it back needs.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	MissingVerbs []string `json:"missingVerbs,omitempty"`

	// failed is true if the change has failed and spec.onFailure is Continue: it is Skipped
	// because it was refused before it was sent, Rejected, Unresolved, or in effect and not
	// ready. While it is Committing, Janus finds out whether it is in effect. What depends on
	// it is not made.
	//
	// +optional
	Failed bool `json:"failed,omitempty"`

	// prepared is true once the before-image is saved.
	Prepared bool `json:"prepared"`

	// committed is true while the change is in effect.
	Committed bool `json:"committed"`

	// rolledBack is true once the change has been rolled back.
	RolledBack bool `json:"rolledBack"`

	// unchanged is true when nothing was written for the change, because the target was as
	// the change leaves it: its resourceVersion, generation and managedFields stay.
	//
	// +optional
	Unchanged bool `json:"unchanged,omitempty"`

	// waitStartTime is since when the change is in effect, if it has readyWhen or
	// goneWhen, or since when an Await waits.
	//
	// +optional
	WaitStartTime *metav1.Time `json:"waitStartTime,omitempty"`

	// holdStartTime is since when readyWhen or goneWhen has been found to hold, if it has
	// holdFor.
	//
	// +optional
	HoldStartTime *metav1.Time `json:"holdStartTime,omitempty"`

	// readyTime is when readyWhen or goneWhen was found to hold, for as long as holdFor
	// demands.
	//
	// +optional
	ReadyTime *metav1.Time `json:"readyTime,omitempty"`

	// readyWhen is the rollback.readyWhen of the change that the item undoes, if that follows
	// from spec.undoOf.
	//
	// +optional
	ReadyWhen *ReadyWhen `json:"readyWhen,omitempty"`

	// rollbackWait is the wait for the target after its compensation, if the change has
	// rollback.readyWhen. An item that has it is restored: in state RollingBack it is waited
	// for, and in state Unresolved it did not become ready.
	//
	// +optional
	RollbackWait *RollbackWait `json:"rollbackWait,omitempty"`

	// guard is true for an Await with guard: it is locked, and judged again.
	//
	// +optional
	Guard bool `json:"guard,omitempty"`

	// guardUID is the uid of the object of which a guard was found to hold; empty if there was
	// none.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	GuardUID types.UID `json:"guardUID,omitempty"`

	// results are what the conditions of the change were found to be when that decided
	// something: activation and when before the change was made or skipped, the others when
	// the wait for the target ended.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	Results []ConditionResult `json:"results,omitempty"`

	// unsettled is true for an Unresolved item of which it is not known whether its
	// change is in effect: what kept it from being rolled back kept Janus from finding
	// out, too.
	//
	// +optional
	Unsettled bool `json:"unsettled,omitempty"`

	// setAside is true for an item whose compensation was refused for a reason that the
	// compensation of an earlier change may remove, such as a schema that an earlier
	// change has made stricter. During the rollback it is retried after the others; if it
	// is Unresolved nevertheless, a recovery retries it.
	//
	// +optional
	SetAside bool `json:"setAside,omitempty"`

	// setAsideFor names the changes that this one depends on and that may be why its
	// compensation was refused, such as a policy that denies it. They are rolled back
	// before it; whatever else it depends on is not.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	SetAsideFor []string `json:"setAsideFor,omitempty"`

	// blockedBy names the item that has to be rolled back before this one, of an item
	// that is Unresolved for that alone: its reason is Blocked. A recovery rolls both back,
	// that item first.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	BlockedBy string `json:"blockedBy,omitempty"`

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

	// conflicts lists the fields that stood in the way of a rollback. Another client had
	// written them: they kept that value, unless spec.conflictPolicy is Force: then they were
	// overwritten. Or the API server stored another value than the old one, or that would
	// have had a controller destroy something. At most the first 16 are listed; message
	// counts the others.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Conflicts []FieldConflict `json:"conflicts,omitempty"`

	// warnings say what is hard to roll back about the change, and what of its content the
	// API server does not store.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`

	// plan is what the change would do, if spec.dryRun is set or spec.approval demands an
	// approval.
	//
	// +optional
	Plan *Plan `json:"plan,omitempty"`
}

// Changes reports whether the item makes a change: it is not skipped, not refused, and no Await.
func (i *Item) Changes() bool {
	return i.State != ItemSkipped && i.State != ItemRejected && i.Type != Await
}

// DeletesInstead reports whether the item deletes its target because a when is false, and does not make
// its change.
func (i *Item) DeletesInstead() bool {
	if i.Type != Delete {
		return false
	}
	for _, r := range i.Results {
		if r.Condition == ConditionWhen && !r.Holds {
			return true
		}
	}
	return len(i.DeletedWith) > 0
}
