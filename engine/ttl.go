package engine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
)

// Dispensable reports whether a Transaction has ended and nothing is left to look at. What
// could not be rolled back may yet be, with the before-images that would go too.
func Dispensable(t *api.Transaction) bool {
	if !t.Status.Phase.Terminal() || t.Status.CompletionTime == nil || t.DeletionTimestamp != nil {
		return false
	}
	for i := range t.Status.Items {
		if t.Status.Items[i].State == api.ItemUnresolved {
			return false
		}
	}
	return true
}

// CanBeUndone reports whether a Transaction has committed and keeps its before-images.
func CanBeUndone(t *api.Transaction) bool {
	return t.Status.Phase == api.PhaseCommitted && t.Status.RollbackRef != nil
}

// Expiry is when a Transaction that has ended is to be deleted; false if it is to stay.
func Expiry(t *api.Transaction) (time.Time, bool) {
	ttl := t.Spec.TTLSecondsAfterFinished
	if ttl == nil || !Dispensable(t) {
		return time.Time{}, false
	}
	return t.Status.CompletionTime.Add(time.Duration(*ttl) * time.Second), true
}

// ExpiresIn is how long a Transaction that was completed then is to stay, before it is
// looked at: the clock may have been ahead.
func (e *Engine) ExpiresIn(completion time.Time, ttl time.Duration) time.Duration {
	return min(ttl, completion.Add(ttl).Sub(e.clock.Now()))
}

// Retire has these Transactions, and none that were named before, deleted when they are
// run next, though their time after their end is not over. One that is not dispensable
// stays, and so does one that can be undone.
func (e *Engine) Retire(those map[types.UID]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.retired = those
}

func (s *saga) isRetired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.retired[s.txn.UID] && Dispensable(s.txn) && !CanBeUndone(s.txn)
}

// expire deletes a Transaction of which nothing is left to look at, when its time has
// come.
func (s *saga) expire(ctx context.Context) Result {
	retired := s.isRetired()
	if at, ok := Expiry(s.txn); !retired {
		if !ok {
			return Result{}
		}
		if wait := at.Sub(s.clock.Now()); wait > 0 {
			return Result{After: wait}
		}
	}
	if err := s.Journal.Delete(ctx, s.txn); err != nil {
		return Result{Err: err}
	}
	s.Recorder.Expired(s.txn, retired)
	return Result{}
}
