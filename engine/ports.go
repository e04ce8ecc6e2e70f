package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/internal/outcome"
)

// Ports are the engine's ways to the world.
type Ports struct {
	Journal  Journal
	Locks    Locks
	Planner  Planner
	Changes  Changes
	History  History
	Gates    Gates
	Recorder Recorder
	// Approvals is asked about Transactions alone that need one.
	Approvals Approvals
}

// Journal writes the Transaction itself. Every method returns the object as
// the API server stored it; the engine goes on with that and never with a cache.
// An error of any class means that the write may have happened: the caller lets
// go of the Transaction and reads it again.
type Journal interface {
	// Checkpoint writes the status of t, if t is still what the API server has.
	Checkpoint(ctx context.Context, t *api.Transaction) (*api.Transaction, error)
	// Unwritten checks whether t still is what the API server has, and fails if not.
	// It costs less than to write it.
	Unwritten(ctx context.Context, t *api.Transaction) error
	// AddFinalizer and RemoveFinalizer change metadata.finalizers and nothing
	// else. Removing it from a Transaction that is gone is no error.
	AddFinalizer(ctx context.Context, t *api.Transaction) (*api.Transaction, error)
	RemoveFinalizer(ctx context.Context, t *api.Transaction) (*api.Transaction, error)
	// Delete deletes t, if it is still what the API server has. That it is gone is no
	// error.
	Delete(ctx context.Context, t *api.Transaction) error
}

// Approvals tells whether an approval can be believed.
type Approvals interface {
	// Guarded fails with reason ApprovalUnguarded if the API server lets anyone write in
	// another's name that they approve the plan of t.
	Guarded(ctx context.Context, t *api.Transaction) error
}

// Locks keeps others from the targets. A lock held by another Transaction is a
// retryable error of reason LockHeld that names the holder.
type Locks interface {
	// Acquire takes the locks of all targets and returns the Lease of each item, as
	// namespace/name. It takes all or says which one it waits for; what it keeps
	// while waiting cannot be part of a cycle. It calls lost, from any goroutine, when what
	// became of a creation is not known: that may land later, whatever it returns.
	Acquire(ctx context.Context, t *api.Transaction, lost func()) ([]string, error)
	// Keep renews what needs renewing, and calls lost as Acquire does. An error of reason
	// LockLost means that another has a lock now.
	Keep(ctx context.Context, t *api.Transaction, lost func()) error
	// Distrust makes it look at the locks of t before it takes them to be held: another
	// process may have released them.
	Distrust(t *api.Transaction)
	// Forget drops what is known of the locks of t, which another process keeps from now on.
	Forget(t *api.Transaction)
	// Release releases every lock of t, recorded or not, and never another's. Where it is to search,
	// another process may also have taken those of items that were skipped since.
	Release(ctx context.Context, t *api.Transaction, search Search) error
}

// Planner gets a Transaction ready and clears up after it.
type Planner interface {
	// Validate looks, without effect, for everything that would keep the changes from
	// being made or rolled back. An error is about the Transaction as a whole, or is worth
	// another try.
	//
	// Once enough reports true, it may return between two requests, with Unfinished set. The next
	// call resumes it: what was found by then is kept, of one change more than before at least.
	Validate(ctx context.Context, t *api.Transaction, enough func() bool) (plan.Preflight, error)
	// Prepare reads the targets of the given items, tries their changes without
	// effect, and saves their before-images. It returns once those are durable. It calls
	// lost, as Locks do.
	Prepare(ctx context.Context, t *api.Transaction, items []int, lost func()) (Prepared, error)
	// Discard deletes the before-images, or with keep lets them live as long as
	// the Transaction does.
	//
	// It looks for those too that the status does not name, as search says.
	Discard(ctx context.Context, t *api.Transaction, keep bool, search Search) error
	// Forget drops what is known of t: it is cleared up, or another process goes on with it.
	Forget(t *api.Transaction)
}

// Search is how to look for locks and before-images that the status does not name.
type Search int

const (
	// SearchNot does not: there can be none.
	SearchNot Search = iota
	// SearchOnce believes the first answer that there are none.
	SearchOnce
	// SearchTwice looks once more: there may well be some.
	SearchTwice
)

// Gates tells whether a change is wanted, and when it is done, or its compensation is.
type Gates interface {
	// Activates reports whether the activation of a change holds, with what was made before it in
	// effect.
	Activates(ctx context.Context, t *api.Transaction, item int) (bool, error)
	// Admits reports whether the when of a change holds. An error of class Terminal
	// means that this cannot be told.
	Admits(ctx context.Context, t *api.Transaction, item int) (bool, error)
	// Ready checks whether the readyWhen or goneWhen of a change that is in effect holds.
	Ready(ctx context.Context, t *api.Transaction, item int) (Readiness, error)
	// Restored checks whether the rollback.readyWhen of a change holds whose compensation is
	// made.
	Restored(ctx context.Context, t *api.Transaction, item int) (Readiness, error)
}

// Readiness is what is known of a change that is waited for.
type Readiness struct {
	// Ready means that it is done, and Failed that it will not be. ByFailWhen says that
	// failWhen holds, and is not so if the target itself says that it has failed.
	Ready, Failed, ByFailWhen bool
	// UID is that of the target of a guard; empty if there is none.
	UID types.UID
	// Message says what is missing; it names the object.
	Message string
	// On are the objects that this depends on; none if it depends on anything else, too.
	On []objectid.ID
}

// History remembers committed Transactions of a namespace by rising numbers.
type History interface {
	// Number returns a number for t that is higher than floor and than any that was given in its
	// namespace before, to t itself too.
	Number(ctx context.Context, t *api.Transaction, floor int64) (int64, error)
	// Digest is that of what is to be remembered of t.
	Digest(t *api.Transaction) (string, error)
	// Keep remembers t under the number in its status. It may be repeated after any
	// outcome. taken says that another Transaction has the number.
	Keep(ctx context.Context, t *api.Transaction) (taken bool, err error)
	// Prune forgets the oldest that are remembered in the namespace of t, with their
	// before-images, until limit are left.
	Prune(ctx context.Context, t *api.Transaction, limit int) error
	// Find finds what t is to undo.
	Find(ctx context.Context, t *api.Transaction) (api.Undoing, error)
	// Remembered reports whether t still is, under the number in its status.
	Remembered(ctx context.Context, t *api.Transaction) (bool, error)
}

// Recorder is told what has become durable, for events and metrics. It cannot
// change anything and must not block.
type Recorder interface {
	// Checkpointed is called after the API server has acknowledged a checkpoint.
	Checkpointed(before, after *api.Transaction)
	// Abandoned is called when a Transaction was let go because it is being deleted. t has
	// what has become of its changes, on record or not.
	Abandoned(t *api.Transaction)
	// Expired is called when a Transaction was deleted because its time after its end is
	// over, or because it was retired.
	Expired(t *api.Transaction, retired bool)
}

// Prepared is what Prepare saved.
type Prepared struct {
	// Account is the uid of the ServiceAccount that read the targets.
	Account string
	// Ref names the objects that hold the before-images.
	Ref *api.RollbackRef
	// Items has one entry for each item asked for, in that order.
	Items []PreparedItem
}

// PreparedItem is what is known of a change before it is made.
type PreparedItem struct {
	// Image says where the before-image is.
	Image api.BeforeImage
	// Plan is the digest of what the change would do, if the Transaction needs approval.
	Plan string
	// Taken are the fields that it takes from others.
	Taken []api.OwnedFields
	// Warnings say what is hard to roll back about it.
	Warnings []string
	// DeferredBy names an earlier item that may be the reason why the change is refused
	// now. Nothing else is known of it then: it is prepared when its turn comes.
	DeferredBy string
	// Refused is why the change cannot be made, of a Transaction that goes on when a change
	// fails. Nothing else is known of it then, and nothing is saved.
	Refused error
}

// Changes makes changes and rolls them back.
type Changes interface {
	// Do makes the change of an intent. When it returns nil the change is in
	// effect. An error of class Terminal or Conflict means that it is not; after
	// any other, Observe tells.
	Do(ctx context.Context, in Intent) error
	// Observe checks whether the change of an intent is in effect. One that is about to
	// be rolled back is Applied, or Applying, only if nothing of it has been rolled back.
	Observe(ctx context.Context, in Intent) (outcome.Finding, error)
	// Undo compensates the change of an intent. It may be called again after any
	// outcome. When it returns no error, nothing of the change is left; an error of
	// class Terminal or Conflict means that it cannot be rolled back. Fields that
	// others have written since are overwritten when the policy is Force and the
	// item lists conflicts already: what is overwritten is on record before.
	Undo(ctx context.Context, in Intent) (outcome.Undone, error)
	// HandOver leaves the fields that the changes of a committed Transaction have
	// set to those who owned them before, and the others to one manager that is the
	// same for every Transaction. It says what went wrong for good, by item; an
	// error is worth another try.
	HandOver(ctx context.Context, t *api.Transaction) (problems map[int]string, err error)
}
