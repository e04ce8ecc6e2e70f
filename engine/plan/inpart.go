package plan

import (
	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// With onFailure Continue, a Transaction may end Failed with a part of its changes in effect. It is
// remembered with these, and they can be undone.

// EndedInPart reports whether a Transaction that goes on when a change fails has come to its end, with
// changes that are in effect. What was rolled back is not.
func EndedInPart(status *api.TransactionStatus) bool {
	if status.RollbackStartTime != nil || status.Phase != api.PhaseFailed {
		return false
	}
	for i := range status.Items {
		if status.Items[i].Committed {
			return true
		}
	}
	return false
}

// EndedInEffect reports whether a Transaction has ended with its changes in effect, or those that it could
// make.
func EndedInEffect(status *api.TransactionStatus) bool {
	return status.Phase == api.PhaseCommitted || EndedInPart(status)
}

// Rememberable reports whether a Transaction can be undone that has made a part of its changes: something is in
// effect, and of all changes it is known whether they are. An undo of the others would leave what it knows nothing of.
func Rememberable(status *api.TransactionStatus) bool {
	changed := false
	for i := range status.Items {
		if status.Items[i].State == api.ItemUnresolved {
			return false
		}
		changed = changed || status.Items[i].Changes()
	}
	return changed
}

// LeftOut reports whether it is on record that a Transaction is not remembered, which was to be: it has
// saved before-images, and does not name them any more.
func LeftOut(status *api.TransactionStatus) bool {
	if status.RevisionDigest == "" || status.RollbackRef != nil {
		return false
	}
	for i := range status.Items {
		if status.Items[i].Before != nil {
			return true
		}
	}
	return false
}

// NoteHistory records with the last item that the history is not as it should be. If that has failed, or was not
// made, it comes after why.
func NoteHistory(items []api.Item, problem string) {
	last := &items[len(items)-1]
	if last.Failed || last.State == api.ItemSkipped && !NotWanted(last) {
		last.Message = errclass.Printable(errclass.Cut(last.Message, 600) + "; " + problem)
		return
	}
	last.Reason, last.Message = ReasonHistory, errclass.Printable(problem)
}
