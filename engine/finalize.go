package engine

import (
	"context"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// ending removes what was taken first and writes the final phase last, so that
// anyone who sees a final phase sees nothing left behind. A crash in between finds
// the same decision again: all items are in their last state.
type ending struct{ *saga }

// finish ends a Transaction whose changes are all in effect, or that has made all that it can: what
// is in effect is then left to those who are to own its fields as by a commit.
func (s ending) finish(ctx context.Context) error {
	inPart := plan.Unmade(&s.txn.Status)
	if !inPart && plan.GuardsLast(&s.txn.Status) {
		return guarding(s).beforeCommit(ctx)
	}
	var remembered remembered
	if !inPart || plan.Rememberable(&s.txn.Status) {
		var recorded bool
		var err error
		if remembered, recorded, err = revisions(s).enter(ctx); err != nil || recorded {
			return err
		}
	}
	if s.flight.Known.Any(plan.Over) {
		return s.recordEnded(ctx) // The hand-over removes what tells that a change was made.
	}
	problems, taken, err := s.keepAndHandOver(ctx, &remembered)
	if err != nil {
		return err
	}
	if taken {
		var recorded bool
		if remembered, recorded, err = revisions(s).enrolled(ctx, true); err != nil || recorded {
			return err
		}
	}
	if err := revisions(s).leaveOut(ctx, &remembered); err != nil {
		return err
	}
	return s.end(ctx, remembered.kept, func(status *api.TransactionStatus) error {
		if !remembered.kept {
			status.RollbackRef, status.RevisionDigest = nil, ""
		}
		if remembered.problem != "" {
			plan.NoteHistory(status.Items, remembered.problem)
		}
		plan.NoteHandOver(status.Items, problems)
		if inPart {
			return plan.MovePhase(status, api.PhaseFailed)
		}
		return plan.MovePhase(status, api.PhaseCommitted)
	})
}

// keepAndHandOver makes the revision and hands the fields over. It says whether the number of the
// revision is taken.
func (s ending) keepAndHandOver(ctx context.Context, r *remembered) (problems map[int]string, taken bool, err error) {
	err = s.both(
		func() (err error) {
			if r.problem == "" {
				*r, taken, err = revisions(s).keep(ctx)
			}
			return err
		},
		func() (err error) { problems, err = s.handOver(ctx); return err },
	)
	return problems, taken, err
}

// handOver gives the fields of the changes to the managers that are to own them
// from now on. The changes are in effect whatever comes of that: what still fails
// when the Transaction has had its time, or its time-outs, is left.
func (s ending) handOver(ctx context.Context) (map[int]string, error) {
	var problems map[int]string
	err := s.whileKeepingLocks(ctx, func() (err error) {
		problems, err = s.Changes.HandOver(ctx, s.txn)
		return err
	})
	if err == nil {
		return problems, nil
	}
	if plan.Definite(err) || plan.Overdue(s.txn, s.clock.Now()) || plan.TimedOutTooOften(s.txn) {
		return map[int]string{len(s.txn.Status.Items) - 1: errclass.Message(err)}, nil
	}
	return nil, err
}

// finishUndo ends a Transaction that has nothing left to roll back, or nothing
// that it can.
func (s ending) finishUndo(ctx context.Context) error {
	return s.end(ctx, true, func(status *api.TransactionStatus) error {
		rollback(s).held(status.Items).Restate(status.Items)
		if len(plan.DescribeUnresolved(status)) > 0 {
			return plan.MovePhase(status, api.PhaseFailed)
		}
		return plan.MovePhase(status, api.PhaseRolledBack)
	})
}

// fail ends a Transaction that has recorded no intent. That it fails is recorded
// before anything is released: another process may have gone on to make changes,
// and relies on the locks and before-images. Then the record is refused.
func (s ending) fail(ctx context.Context, cause plan.Cause) error {
	if _, failing := plan.Failure(&s.txn.Status); !failing && len(s.txn.Status.Items) > 0 {
		return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
			plan.SetFailure(status, s.txn.Generation, s.clock.Now(), cause)
			return nil
		})
	}
	return s.end(ctx, false, func(status *api.TransactionStatus) error {
		s.accept(status)
		plan.SetCause(status, s.txn.Generation, s.clock.Now(), cause)
		status.RollbackRef = nil
		return plan.MovePhase(status, api.PhaseFailed)
	})
}

// end releases the locks, discards or keeps the before-images, removes the
// finalizer and writes the final status. A Transaction that is being deleted goes
// when its finalizer does, so its status is written before.
func (s ending) end(ctx context.Context, keepImages bool, final func(*api.TransactionStatus) error) error {
	deleting := s.txn.DeletionTimestamp != nil
	if deleting {
		if err := s.mayGo(); err != nil {
			return err
		}
	}
	if err := cleanup(s).release(ctx, keepImages && !deleting); err != nil {
		return err
	}
	steps := []func() error{
		func() error { return s.removeFinalizer(ctx) },
		func() error {
			return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
				status.CompletionTime = s.now()
				status.SuspendTime = nil
				status.ObservedGeneration = s.txn.Generation
				return final(status)
			})
		},
	}
	if deleting {
		steps[0], steps[1] = steps[1], steps[0]
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	if s.gone = deleting; deleting {
		cleanup(s).forget()
	}
	return nil
}

// abandon lets a Transaction go that is being deleted and does not ask for its
// changes to be rolled back.
func (s ending) abandon(ctx context.Context) error {
	if err := s.mayGo(); err != nil {
		return err
	}
	left, err := s.withInFlight()
	if err != nil {
		return err
	}
	if err := cleanup(s).release(ctx, false); err != nil {
		return err
	}
	if err := s.removeFinalizer(ctx); err != nil {
		return err
	}
	s.Recorder.Abandoned(left)
	s.gone = true
	cleanup(s).forget()
	return nil
}

// withInFlight is the Transaction with what is in flight, which is not put on record any more.
func (s ending) withInFlight() (*api.Transaction, error) {
	if s.txn.Status.Phase != api.PhaseCommitting {
		return s.txn, nil
	}
	t := s.txn.DeepCopy()
	if err := s.recordOver(&t.Status); err != nil {
		return nil, err
	}
	if err := s.flight.Withdraw(&t.Status, api.ItemCommitting, api.ItemPrepared); err != nil {
		return nil, err
	}
	plan.Summarize(t, s.clock.Now())
	return t, nil
}

// observeGeneration records that a Transaction that has ended was looked at since its spec
// was changed, or the clock was put right.
func (s ending) observeGeneration(ctx context.Context) error {
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		status.ObservedGeneration = s.txn.Generation
		return nil
	})
}
