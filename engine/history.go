package engine

import (
	"context"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// revisions remembers Transactions that have ended with changes in effect, so that they can be undone.
// Each Transaction is given a number when it first holds its locks: those that change the same objects
// are numbered in the order in which they do. Of one that is remembered the before-images are kept. The number, and what is to
// be remembered, are on record before anything is made under it: a process that takes over makes the same
// revision, and no other.
type revisions struct{ *saga }

// remembered is what has come of remembering a Transaction.
type remembered struct {
	kept    bool
	problem string // why it is not, or the history is not as it should be
}

// enter gives the Transaction a number, or makes its revision. It says whether a
// checkpoint was written, after which that is to be decided again. The changes are in
// effect whatever comes of it: what fails for good, or still when the Transaction has
// had its time, is left.
func (s revisions) enter(ctx context.Context) (r remembered, again bool, err error) {
	if s.policy.HistoryLimit(s.txn) == 0 || s.txn.DeletionTimestamp != nil {
		return remembered{}, false, nil // What is deleted is not remembered: its revision would go with it.
	}
	if s.txn.Status.RevisionDigest == "" {
		again, err = true, s.enroll(ctx, false)
	} else {
		r.kept, again, err = s.keepRevision(ctx)
	}
	if err == nil || isJournal(err) || !plan.Definite(err) && !plan.Overdue(s.txn, s.clock.Now()) {
		return r, again, err
	}
	// What was sent for the revision and may land yet names the before-images.
	r.kept = r.kept || !plan.Definite(err) && s.txn.Status.RevisionDigest != ""
	r.problem = "the changes are in effect, but the history is not as it should be: " + errclass.Message(err)
	return r, false, nil
}

// keepRevision makes the revision, and forgets those of which it takes the place.
func (s revisions) keepRevision(ctx context.Context) (kept, again bool, err error) {
	// One that is made too late might be re-created, after others have taken its place.
	if err := s.confirm(ctx, false); err != nil {
		return false, false, err
	}
	var taken bool
	err = s.whileKeepingLocks(ctx, func() (err error) {
		if taken, err = s.History.Keep(ctx, s.txn); err != nil || taken {
			return err
		}
		kept = true
		return s.History.Prune(ctx, s.txn, s.policy.HistoryLimit(s.txn))
	})
	if taken {
		return false, true, s.enroll(ctx, true)
	}
	return kept, false, err
}

// number gives the Transaction its number, for a step that holds its locks. One that cannot have
// one, as where janusd lacks a right, goes on without.
func (s revisions) number(ctx context.Context) (int64, error) {
	if s.policy.HistoryLimit(s.txn) == 0 || s.txn.Status.Revision > 0 {
		return s.txn.Status.Revision, nil
	}
	number, err := s.History.Number(ctx, s.txn, 0)
	if plan.Definite(err) {
		return 0, nil
	}
	return number, err
}

// enroll records what is to be remembered, and under which number, if the Transaction has none, or
// it turned out to be taken.
func (s revisions) enroll(ctx context.Context, taken bool) error {
	number := s.txn.Status.Revision
	digest, err := s.History.Digest(s.txn)
	if err == nil && (number == 0 || taken) {
		err = s.whileKeepingLocks(ctx, func() (err error) {
			number, err = s.History.Number(ctx, s.txn, number)
			return err
		})
	}
	if err != nil {
		return err
	}
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		status.Revision, status.RevisionDigest = number, digest
		return nil
	})
}
