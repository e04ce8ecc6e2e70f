package engine

import (
	"context"
	"time"

	api "janus.io/janus/api/v1alpha1"
)

// Expiry is when a Transaction that has ended is to be deleted; false if it is to stay.
// What could not be taken back may yet be, with the before-images that would go too.
func Expiry(t *api.Transaction) (time.Time, bool) {
	ttl := t.Spec.TTLSecondsAfterFinished
	if ttl == nil || !t.Status.Phase.Terminal() || t.Status.CompletionTime == nil || t.DeletionTimestamp != nil {
		return time.Time{}, false
	}
	for i := range t.Status.Items {
		if t.Status.Items[i].State == api.ItemUnresolved {
			return time.Time{}, false
		}
	}
	return t.Status.CompletionTime.Add(time.Duration(*ttl) * time.Second), true
}

// ExpiresIn is how long a Transaction that was completed then is to stay.
func (e *Engine) ExpiresIn(completion time.Time, ttl time.Duration) time.Duration {
	return completion.Add(ttl).Sub(e.clock.Now())
}

// expire deletes a Transaction of which nothing is left to look at, when its time has
// come.
func (s *saga) expire(ctx context.Context) Result {
	at, ok := Expiry(s.txn)
	if !ok {
		return Result{}
	}
	if wait := at.Sub(s.clock.Now()); wait > 0 {
		return Result{After: wait}
	}
	if err := s.Journal.Delete(ctx, s.txn); err != nil {
		return Result{Err: err}
	}
	s.Witness.Expired(s.txn)
	return Result{}
}
