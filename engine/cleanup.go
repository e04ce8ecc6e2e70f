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
	s.mu.Lock()
	m, ok := s.memories[s.txn.UID]
	s.mu.Unlock()
	if !ok {
		return Result{}
	}
	wait := s.doubtTime()
	if s.txn.DeletionTimestamp != nil && !gone {
		wait = 0 // Leftovers keep it from going.
	}
	// Of one that is gone nobody else lets go: its finalizer was taken off before its end.
	if m.loose || gone || !m.doubt.IsZero() && wait <= 0 {
		named := s.txn.Status.RollbackRef != nil
		if !named && m.images != nil {
			s.txn = s.txn.DeepCopy()
			s.txn.Status.RollbackRef = m.images
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
	for _, t := range e.takenFor(name) {
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
func (s *saga) missTime() (left time.Duration) {
	s.know(func(m *memory) {
		if m.missed.IsZero() {
			m.missed = s.clock.Now()
		}
		left = s.policy.SettleTime - s.clock.Since(m.missed)
	})
	return left
}

// takenFor returns the Transactions of a name for which this process may have made
// something.
func (e *Engine) takenFor(name types.NamespacedName) []*api.Transaction {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []*api.Transaction
	for _, m := range e.memories {
		if m.txn.name == name {
			out = append(out, m.txn.transaction())
		}
	}
	return out
}

// Distrust drops what this process knows of a Transaction of which a step was broken
// off: it is met again as if another process had run it.
func (e *Engine) Distrust(t *api.Transaction) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.memories, t.UID)
}

// Forget drops what this process knows of some Transactions that another process goes on
// with from now on. Should they come back, they are met as after a restart. None of them
// may be running.
func (e *Engine) Forget(these func(types.NamespacedName) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for uid, m := range e.memories {
		if these(m.txn.name) {
			t := m.txn.transaction()
			e.Locks.Forget(t)
			e.Planner.Forget(t)
			delete(e.memories, uid)
		}
	}
	// Another may leave something of those that were cleared up, too. It costs little to
	// look at the rest of them again.
	clear(e.known.since)
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

// aftermath is how long after the end of a Transaction it is thought possible that a
// process which was late with it has died and left something.
const aftermath = 10 * time.Minute

// EndedLately reports whether a Transaction that was completed then may have something
// left of it. It costs a few requests to look.
func (e *Engine) EndedLately(completion *metav1.Time) bool {
	if completion == nil {
		return false
	}
	ago := e.clock.Since(completion.Time)
	return -aftermath < ago && ago < aftermath
}

// forget drops what is known of a Transaction of which nothing is left.
func (s *saga) forget() {
	s.Planner.Forget(s.txn)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.memories, s.txn.UID)
	s.known.add(s.txn.UID, s.clock.Now())
}

// clearedUp are the Transactions of which nothing is left since a short while ago.
type clearedUp struct {
	since map[types.UID]time.Time
	prune int // the size at which those that count no more are dropped
}

func (k *clearedUp) has(uid types.UID) bool {
	_, ok := k.since[uid]
	return ok
}

func (k *clearedUp) add(uid types.UID, now time.Time) {
	if len(k.since) >= k.prune {
		for old, then := range k.since {
			if now.Sub(then) > 2*aftermath {
				delete(k.since, old)
			}
		}
		k.prune = max(64, 2*len(k.since))
	}
	k.since[uid] = now
}
