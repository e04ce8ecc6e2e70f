package engine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
)

// lookBack lets go of what was made for a Transaction that has ended and was not
// there, or not known, when it did: by this process, which was late; by a request of
// its own that was under way; or by a process that has died since.
func (s *saga) lookBack(ctx context.Context, gone bool) Result {
	left, ok := s.memory.Leftovers()
	if !ok {
		return Result{}
	}
	wait := s.doubtTime()
	if s.txn.DeletionTimestamp != nil && !gone {
		wait = 0 // Leftovers keep it from going.
	}
	// Of one that is gone nobody else lets go: its finalizer was taken off before its end.
	if left.Unrecorded || gone || left.Doubt && wait <= 0 {
		named := s.txn.Status.RollbackRef != nil
		if !named && left.Images != nil {
			t := s.txn.DeepCopy()
			t.Status.RollbackRef = left.Images
			s.follow(t)
		}
		keep := named && s.txn.DeletionTimestamp == nil && !gone
		if keep && s.txn.Status.Revision > 0 {
			var err error
			if keep, err = s.History.Remembered(ctx, s.txn); err != nil {
				return Result{Err: err}
			}
		}
		if err := s.letGo(ctx, keep); err != nil {
			return Result{Err: err}
		}
	}
	if wait > 0 {
		return Result{After: wait}
	}
	s.forget()
	return Result{}
}

// Vanished lets go of what this process has made for a Transaction of that name that is
// gone: it was late with it, and another process has let it go.
func (e *Engine) Vanished(ctx context.Context, name types.NamespacedName) Result {
	for _, t := range e.memories.Named(name) {
		s := e.saga(t)
		if wait := s.missTime(); wait > 0 {
			return Result{After: wait}
		}
		if result := s.lookBack(context.WithoutCancel(ctx), true); result != (Result{}) {
			return result
		}
	}
	return Result{}
}

// missTime is how much longer a Transaction must be found to be gone before that is
// believed: a server that is behind may not know of it.
func (s *saga) missTime() time.Duration { return s.policy.SettleTime - s.memory.GoneFor() }

// Distrust drops what this process knows of a Transaction of which a step was broken
// off: it is met again as if another process had run it.
func (e *Engine) Distrust(t *api.Transaction) {
	e.memories.Drop(t)
}

// Forget drops what this process knows of some Transactions that another process goes on
// with from now on. Should they come back, they are met as after a restart. None of them
// may be running.
func (e *Engine) Forget(these func(types.NamespacedName) bool) {
	for _, t := range e.memories.Forget(these) {
		e.Locks.Forget(t)
		e.Planner.Forget(t)
	}
}

// Tidy is for a process that is about to end, and whose last run of a Transaction was
// overtaken by another process. It does what the next run would: it lets go of what that
// process may have overlooked, if the Transaction has ended. If not, whoever ends it
// lets go of that too.
func (e *Engine) Tidy(ctx context.Context, t *api.Transaction) error {
	if !t.Status.Phase.Terminal() {
		return nil
	}
	return e.saga(t).lookBack(ctx, false).Err
}

// EndedLately reports whether a Transaction that was completed then may have something
// left of it. It costs a few requests to look.
func (e *Engine) EndedLately(completion *metav1.Time) bool { return e.memories.EndedLately(completion) }

// forget drops what is known of a Transaction of which nothing is left.
func (s *saga) forget() {
	s.Planner.Forget(s.txn)
	s.memory.Forget()
}
