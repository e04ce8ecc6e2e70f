package engine

import (
	"context"
	"strings"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

// undoItem rolls item i back, or returns the refusal that it met.
func (s rollback) undoItem(ctx context.Context, i int) (undone outcome.Undone, refusal, err error) {
	if _, ok := s.memory.Undone(i); ok {
		s.flight.Happened(i, plan.Ended)
		return outcome.Undone{}, nil, nil
	}
	if plan.Creates(s.txn, i) && s.doubtTime() > 0 {
		// Another process has had the Transaction a moment ago, and may have sent a creation
		// that is under way: once the object is gone, it would re-create it.
		return outcome.Undone{}, nil, s.keepUntilSettled(ctx, i)
	}
	l, err := s.keepLocksIfPossible(ctx)
	if isJournal(err) {
		return outcome.Undone{}, nil, err
	}
	if err != nil {
		return outcome.Undone{}, nil, s.giveUpIf(ctx, i, err)
	}
	in, err := s.intent(l, i, api.ItemRollingBack)
	if err != nil {
		return outcome.Undone{}, nil, err
	}
	s.flight.Happened(i, plan.TakenUp)
	undone, err = s.Changes.Undo(ctx, in)
	if isJournal(err) {
		return undone, nil, err
	}
	if err == nil || errclass.ClassOf(err) == errclass.Unknown || undone.Recreated != "" && !plan.Definite(err) {
		s.unsure(i)
	}
	if err != nil {
		refusal, err = s.afterRefusal(ctx, i, undone, err)
		return undone, refusal, err
	}
	s.memory.Undo(i, undone)
	s.flight.Happened(i, plan.Ended)
	if undone.Recreated != "" || isShared(s.txn.Status.Items, i) {
		// It is not re-created once more, by anyone who goes on, if another client
		// deletes it meanwhile; and to another change of the object it must be known.
		return undone, nil, s.recordAndOpen(ctx)
	}
	return undone, nil, nil
}

// afterRefusal records what must be on record before item i is tried again at once, and
// returns the refusal if there is nothing of that kind.
func (s rollback) afterRefusal(ctx context.Context, i int, undone outcome.Undone, err error) (refusal, failed error) {
	switch {
	case mayOverwrite(s.txn, i, err):
		return nil, s.checkpoint(ctx, func(status *api.TransactionStatus) error {
			status.Items[i].Conflicts = plan.ConflictsOf(errclass.FieldsOf(err), s.share())
			return nil
		})
	case !plan.Definite(err) && undone.Recreated != "" && undone.Recreated != s.txn.Status.Items[i].RecreatedUID:
		// It is not re-created once more, by anyone who goes on, if another client deletes it
		// meanwhile.
		return nil, s.checkpoint(ctx, func(status *api.TransactionStatus) error {
			status.Items[i].RecreatedUID = undone.Recreated
			return nil
		})
	default:
		return err, nil
	}
}

// isShared reports whether another change of the object of item i is about to be rolled back.
// The object then looks to this one as if another client had written it.
func isShared(items []api.Item, i int) bool {
	own := items[i].Target
	for j := range items {
		item := &items[j]
		if j != i && item.State == api.ItemRollingBack && !plan.Restoring(item) && item.Target.Name == own.Name && item.Target.Identity() == own.Identity() {
			return true
		}
	}
	return false
}

// mayOverwrite reports whether item i is to be rolled back over what others have
// written, and that is not on record yet. What is overwritten cannot be read
// afterwards: it is recorded before.
func mayOverwrite(t *api.Transaction, i int, err error) bool {
	return t.Spec.ConflictPolicy == api.ConflictForce && plan.Unchanged(t) &&
		errclass.Is(err, errclass.FieldConflict) && len(t.Status.Items[i].Conflicts) == 0 && len(errclass.FieldsOf(err)) > 0
}

// giveUpIf gives up on item i on an error that will not heal, or when the rollback
// has had its time, and waits on any other. A compensation that was sent before, by this
// process or another, may still land: that is waited for first, but for a server that
// does not answer.
func (s rollback) giveUpIf(ctx context.Context, i int, err error, also ...func(*api.Item)) error {
	late := plan.RollbackOverdue(s.txn, s.clock.Now())
	switch {
	case !plan.Definite(err) && !late:
		return err
	case !s.flight.Known[i].NoEffect() && errclass.ClassOf(err) != errclass.Unknown && s.settleTime(i) > 0:
		return s.unsettled(i)
	}
	s.memory.Settled(i)
	if plan.Definite(err) {
		return s.giveUp(ctx, i, err, also...)
	}
	return s.giveUp(ctx, i, errclass.New(errclass.Terminal, errclass.DeadlineExceeded, "roll back",
		s.txn.Status.Items[i].Target.String(), "not done within spec.timeout (%s): %w", plan.Timeout(s.txn), err), also...)
}

// giveUp records that item i cannot be rolled back and goes on to the next.
func (s rollback) giveUp(ctx context.Context, i int, err error, also ...func(*api.Item)) error {
	return s.record(ctx, func(status *api.TransactionStatus) error {
		return s.recordUnresolved(status, i, err, also...)
	})
}

// recordUnresolved writes into the status that item i cannot be rolled back.
func (s rollback) recordUnresolved(status *api.TransactionStatus, i int, err error, also ...func(*api.Item)) error {
	item := &status.Items[i]
	s.recordReason(item, i, err)
	item.Conflicts = plan.ConflictsOf(errclass.FieldsOf(err), s.share())
	for _, record := range also {
		record(item)
	}
	if err := plan.MoveItem(item, api.ItemUnresolved); err != nil {
		return err
	}
	if status.FailedItem == "" {
		status.FailedItem = item.Name
	}
	return nil
}

// recordReason writes into item i why it was refused.
func (s rollback) recordReason(item *api.Item, i int, err error) {
	cause := plan.ItemCause(s.txn, i, err)
	if !strings.Contains(cause.Message, item.Target.Name) {
		cause.Message = "roll back " + item.Target.String() + ": " + cause.Message
	}
	item.Reason, item.Message = cause.Reason, cause.Message
}
