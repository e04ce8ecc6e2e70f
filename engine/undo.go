package engine

import (
	"context"
	"slices"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

// refused is an item that was refused to be rolled back.
type refused struct {
	item   int
	why    error
	undone outcome.Undone
}

// undoItem rolls an item back, or returns the refusal that it met.
func (s rollback) undoItem(ctx context.Context, i int) (refused, error) {
	all, err := s.undoItems(ctx, i)
	if len(all) == 0 {
		return refused{}, err
	}
	return all[0], err
}

// undoItems rolls items back, and returns those that were refused.
func (s rollback) undoItems(ctx context.Context, these ...int) ([]refused, error) {
	these = slices.DeleteFunc(slices.Clone(these), s.isUndone)
	if len(these) == 0 {
		return nil, nil
	}
	if err := s.recordRecreated(ctx, these); err != nil {
		return nil, err
	}
	if plan.Creates(s.txn, these[0]) && s.doubtTime() > 0 {
		// Another process has had the Transaction a moment ago, and may have sent a creation
		// that is under way: once the object is gone, it would re-create it.
		return nil, s.keepUntilSettled(ctx, these[0])
	}
	l, err := s.keepLocksIfPossible(ctx)
	if isJournal(err) {
		return nil, err
	}
	if err != nil {
		return nil, s.giveUpIf(ctx, these[0], err)
	}
	all := make([]compensation, len(these))
	for n, i := range these {
		if all[n].in, err = s.intent(l, i, api.ItemRollingBack); err != nil {
			return nil, err
		}
	}
	_ = s.whileKeepingLocks(ctx, func() error { s.sendUndos(ctx, all); return nil })
	return s.concludeUndos(ctx, all)
}

// isUndone reports whether this process has rolled item i back already.
func (s rollback) isUndone(i int) bool {
	_, ok := s.memory.Undone(i)
	if ok {
		s.flight.Happened(i, plan.Ended)
	}
	return ok
}

// recordRecreated records what this process has created again, if the record of it was lost: another
// client had written the Transaction. It would be created once more otherwise, although someone has
// deleted it meanwhile.
func (s rollback) recordRecreated(ctx context.Context, these []int) error {
	if !slices.ContainsFunc(these, s.unrecorded) {
		return nil
	}
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		for _, i := range these {
			if s.unrecorded(i) {
				status.Items[i].RecreatedUID = s.memory.Recreated(i)
			}
		}
		return nil
	})
}

// unrecorded reports whether this process has created the object of item i again, and the status does
// not say so.
func (s rollback) unrecorded(i int) bool {
	return s.txn.Status.Items[i].RecreatedUID == "" && s.memory.Recreated(i) != ""
}

// concludeUndos notes what has come of compensations, records what must be on record before anything
// else is sent, and returns those that were refused. To send one of these again would tell less: it
// meets what the first request has left.
func (s rollback) concludeUndos(ctx context.Context, all []compensation) ([]refused, error) {
	var failed []*compensation
	record := false
	for n := range all {
		c := &all[n]
		if !c.sent {
			continue
		}
		i := c.in.Index()
		if !isJournal(c.err) && (c.err == nil || errclass.ClassOf(c.err) == errclass.Unknown || c.undone.Recreated != "" && !plan.Definite(c.err)) {
			s.unsure(i)
		}
		if c.undone.Recreated != "" {
			s.memory.Recreate(i, c.undone.Recreated)
		}
		if c.err != nil {
			failed = append(failed, c)
			continue
		}
		s.memory.Undo(i, c.undone)
		s.flight.Happened(i, plan.Ended)
		// It is not re-created once more, by a process that goes on, if another client deletes it
		// meanwhile; and to another change of the object it must be known.
		record = record || c.undone.Recreated != "" || isShared(s.txn.Status.Items, i)
	}
	for _, c := range failed {
		if isJournal(c.err) {
			return nil, c.err
		}
	}
	if record {
		if err := s.recordAndOpen(ctx); err != nil {
			return nil, err
		}
	}
	var out []refused
	for _, c := range failed {
		r := refused{item: c.in.Index(), undone: c.undone}
		var err error
		if r.why, err = s.afterRefusal(ctx, r.item, c.undone, c.err); err != nil {
			return nil, err
		}
		if r.why != nil {
			out = append(out, r)
		}
	}
	return out, nil
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
	case undone.Recreated != "" && undone.Recreated != s.txn.Status.Items[i].RecreatedUID:
		// It is not re-created once more, by anyone who goes on or by a recovery, if another client
		// deletes it meanwhile.
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
	cause := plan.ItemCauseOf(s.txn, i, "roll back", err)
	item.Reason, item.Message = cause.Reason, cause.Message
}
