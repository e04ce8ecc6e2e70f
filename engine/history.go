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

// enter records what is to be remembered, if that is not on record, and says whether it did. The
// changes are in effect whatever comes of it: what fails for good, or still when the Transaction has
// had its time, is left.
func (s revisions) enter(ctx context.Context) (r remembered, recorded bool, err error) {
	if !s.wanted() || s.txn.Status.RevisionDigest != "" {
		return remembered{}, false, nil
	}
	return s.enrolled(ctx, false)
}

// wanted reports whether the Transaction is to be remembered. What is deleted is not: its revision
// would go with it. Neither is what was left out of the history: its before-images may be gone.
func (s revisions) wanted() bool {
	return s.policy.HistoryLimit(s.txn) != 0 && s.txn.DeletionTimestamp == nil && !plan.LeftOut(&s.txn.Status)
}

// leaveOut records that the Transaction is not remembered after all, before its before-images are
// discarded: anyone who has to end it once more would make a revision of what cannot be undone. What is
// deleted is not remembered by anyone.
func (s revisions) leaveOut(ctx context.Context, r *remembered) error {
	status := &s.txn.Status
	if r.kept || status.RevisionDigest == "" || status.RollbackRef == nil || s.txn.DeletionTimestamp != nil {
		return nil
	}
	err := s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		status.RollbackRef = nil
		if r.problem != "" {
			plan.NoteHistory(status.Items, r.problem)
		}
		return nil
	})
	r.problem = "" // It is on record.
	return err
}

// enrolled is enroll for a Transaction whose changes are in effect.
func (s revisions) enrolled(ctx context.Context, taken bool) (r remembered, recorded bool, err error) {
	if err = s.enroll(ctx, taken); err == nil {
		return remembered{}, true, nil
	}
	r, err = s.orLeave(remembered{}, err)
	return r, false, err
}

// keep makes the revision, and forgets those of which it takes the place. It says whether its number
// is taken.
func (s revisions) keep(ctx context.Context) (r remembered, taken bool, err error) {
	if !s.wanted() || s.txn.Status.RevisionDigest == "" {
		return remembered{}, false, nil
	}
	// One that is made too late might be re-created, after others have taken its place.
	if err := s.confirm(ctx, false); err != nil {
		return remembered{}, false, err
	}
	err = s.whileKeepingLocks(ctx, func() (err error) {
		if taken, err = s.History.Keep(ctx, s.txn); err != nil || taken {
			return err
		}
		r.kept = true
		return s.History.Prune(ctx, s.txn, s.policy.HistoryLimit(s.txn))
	})
	r, err = s.orLeave(r, err)
	return r, taken, err
}

// orLeave leaves what has failed for good, or still does when the Transaction has had its time.
func (s revisions) orLeave(r remembered, err error) (remembered, error) {
	if err == nil || isJournal(err) || !plan.Definite(err) && !plan.Overdue(s.txn, s.clock.Now()) {
		return r, err
	}
	// What was sent for the revision and may land yet names the before-images.
	r.kept = r.kept || !plan.Definite(err) && s.txn.Status.RevisionDigest != ""
	r.problem = "the changes are in effect, but the history is not as it should be: " + errclass.Message(err)
	return r, nil
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
