package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// CanBeUndone reports whether a Transaction has ended with changes in effect, and keeps its before-images.
func CanBeUndone(t *api.Transaction) bool {
	return EndedInEffect(&t.Status) && t.Status.RollbackRef != nil
}

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

// NeverStored reports whether a Transaction has failed because the command that created it has
// not stored its content.
func NeverStored(t *api.Transaction) bool {
	ready := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReady)
	return t.Status.Phase == api.PhaseFailed && t.Status.RollbackRef == nil && ready != nil && ready.Reason == errclass.ContentMissing
}

// Expiry is when a Transaction that has ended is to be deleted; false if it is to stay.
func Expiry(t *api.Transaction) (time.Time, bool) {
	ttl := t.Spec.TTLSecondsAfterFinished
	switch {
	case !Dispensable(t):
		return time.Time{}, false
	case NeverStored(t):
		return t.Status.CompletionTime.Time, true
	case ttl == nil:
		return time.Time{}, false
	}
	return t.Status.CompletionTime.Add(time.Duration(*ttl) * time.Second), true
}
