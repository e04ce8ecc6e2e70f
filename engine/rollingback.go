package engine

import (
	"context"
	"slices"
	"strings"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

// settle finds out what became of an intent that was open when the rollback
// began. A request that its sender has given up on may still land, and a change
// that lands after its item was written off would outlive the rollback. So "not
// applied" is believed only after the settle time.
func (s *saga) settle(ctx context.Context, i int) error {
	in, err := s.intent(i, api.ItemCommitting)
	if err != nil {
		return err
	}
	finding, err := s.Changes.Observe(ctx, in)
	if err == nil && finding == outcome.NotApplied {
		if wait := s.settleTime(i); wait > 0 {
			return s.stay(ctx, i)
		}
		// One answer may be of before the change, and nobody would look again.
		finding, err = s.Changes.Observe(ctx, in)
	}
	if err != nil {
		return s.unresolvedOr(ctx, i, err, func(item *api.Item) { item.Unsettled = true })
	}
	switch finding {
	case outcome.Applied, outcome.Applying:
		s.settled(i)
		return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
			return plan.MoveItem(&status.Items[i], api.ItemCommitted)
		})
	case outcome.Diverged:
		s.settled(i)
		return s.unresolved(ctx, i, plan.Diverged(s.txn, i))
	}
	s.settled(i)
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		return plan.MoveItem(&status.Items[i], api.ItemRejected)
	})
}

// undo compensates item i.
func (s *saga) undo(ctx context.Context, i int) error {
	undone, refusal, err := s.undoItem(ctx, i)
	switch {
	case err != nil || refusal == nil:
		return err
	case s.mayComeLater(i, refusal):
		return s.setAside(ctx, i, refusal, undone)
	}
	return s.unresolvedOr(ctx, i, refusal, func(item *api.Item) { plan.ReportBeside(item, undone, s.share()) })
}

// undoItem compensates item i, or returns the refusal that it met. A lock that another
// client holds by now is no reason not to: every write carries a precondition, and
// waiting for a lock while holding others could be part of a cycle.
func (s *saga) undoItem(ctx context.Context, i int) (undone outcome.Undone, refusal, err error) {
	if later := plan.InTheWay(s.txn.Status.Items, i); later >= 0 {
		return outcome.Undone{}, nil, s.unresolved(ctx, i, plan.Blocked(&s.txn.Status, i, later))
	}
	if _, ok := s.undone(i); ok {
		s.isOver(i)
		return outcome.Undone{}, nil, nil
	}
	if plan.Creates(s.txn, i) && s.doubtTime() > 0 {
		// Another process has had the Transaction a moment ago, and may have sent a creation
		// that is under way: once the object is gone, it would re-create it.
		return outcome.Undone{}, nil, s.stay(ctx, i)
	}
	err = s.keep(ctx)
	if isJournal(err) {
		return outcome.Undone{}, nil, err
	}
	if err != nil && !errclass.Is(err, errclass.LockLost) && !plan.Definite(err) {
		return outcome.Undone{}, nil, s.unresolvedOr(ctx, i, err)
	}
	in, err := s.intent(i, api.ItemRollingBack)
	if err != nil {
		return outcome.Undone{}, nil, err
	}
	s.flight.happened(i, plan.TakenUp)
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
	s.know(func(m *memory) {
		if m.undone == nil {
			m.undone = map[int]outcome.Undone{}
		}
		m.undone[i], m.restored = undone, s.clock.Now()
	})
	s.isOver(i)
	if undone.Recreated != "" || s.shared(i) {
		// It is not re-created once more, by whoever goes on, if another client
		// deletes it meanwhile; and to another change of the object it must be known.
		return undone, nil, s.writeDown(ctx)
	}
	return undone, nil, nil
}

// afterRefusal records what must be on record before item i is tried again at once, and
// returns the refusal if there is nothing of that kind.
func (s *saga) afterRefusal(ctx context.Context, i int, undone outcome.Undone, err error) (refusal, failed error) {
	switch {
	case s.mayOverwrite(i, err):
		return nil, s.checkpoint(ctx, func(status *api.TransactionStatus) error {
			status.Items[i].Conflicts = plan.ConflictsOf(errclass.FieldsOf(err), s.share())
			return nil
		})
	case !plan.Definite(err) && undone.Recreated != "" && undone.Recreated != s.txn.Status.Items[i].RecreatedUID:
		// It is not re-created once more, by whoever goes on, if another client deletes it
		// meanwhile.
		return nil, s.checkpoint(ctx, func(status *api.TransactionStatus) error {
			status.Items[i].RecreatedUID = undone.Recreated
			return nil
		})
	default:
		return err, nil
	}
}

// shared reports whether another change of the object of item i is about to be rolled back.
// The object then looks to this one as if another client had written it.
func (s *saga) shared(i int) bool {
	own := s.txn.Status.Items[i].Target
	for j := range s.txn.Status.Items {
		item := &s.txn.Status.Items[j]
		if j != i && item.State == api.ItemRollingBack && item.Target.Name == own.Name && item.Target.Identity() == own.Identity() {
			return true
		}
	}
	return false
}

// stay waits until a request for item i cannot land any more, and keeps the locks
// meanwhile. That another client holds one by now shows when the rollback goes on.
func (s *saga) stay(ctx context.Context, i int) error {
	if err := s.keep(ctx); isJournal(err) {
		return err
	}
	return plan.Unsettled(s.txn.Status.Items[i].Target.String())
}

// share is how much an item of this Transaction may report.
func (s *saga) share() int { return plan.ReportShare(len(s.txn.Status.Items)) }

// mayOverwrite reports whether item i is to be rolled back over what others have
// written, and that is not on record yet. What is overwritten cannot be read
// afterwards: it is recorded before.
func (s *saga) mayOverwrite(i int, err error) bool {
	return s.txn.Spec.ConflictPolicy == api.ConflictForce && plan.Unchanged(s.txn) &&
		errclass.Is(err, errclass.FieldConflict) && len(s.txn.Status.Items[i].Conflicts) == 0 && len(errclass.FieldsOf(err)) > 0
}

// openUndos records the intents of the next compensations: of an object one.
func (s *saga) openUndos(status *api.TransactionStatus) error {
	if s.txn.Spec.Cancel == api.CancelStop {
		return nil
	}
	open := map[api.Target]bool{}
	var held plan.Held
	for _, i := range slices.Backward(plan.ScheduleOf(s.txn).Order) {
		item := &status.Items[i]
		if held.Covers(item, false) {
			continue
		}
		switch item.State {
		case api.ItemCommitting:
			return nil
		case api.ItemRollingBack:
			open[item.Target.Identity()] = true
		case api.ItemCommitted:
			if open[item.Target.Identity()] || len(open) >= s.policy.Window {
				return nil
			}
			open[item.Target.Identity()] = true
			if err := plan.MoveItem(item, api.ItemRollingBack); err != nil {
				return err
			}
		}
	}
	return nil
}

// unresolvedOr gives up on item i on an error that will not heal, or when the rollback
// has had its time, and waits on any other. A compensation that was sent before, by this
// process or another, may still land: that is waited for first, but for a server that
// does not answer.
func (s *saga) unresolvedOr(ctx context.Context, i int, err error, also ...func(*api.Item)) error {
	start := s.txn.Status.RollbackStartTime
	late := start != nil && s.clock.Now().After(start.Add(plan.Timeout(s.txn)))
	switch {
	case !plan.Definite(err) && !late:
		return err
	case !s.flight.known[i].NoEffect() && errclass.ClassOf(err) != errclass.Unknown && s.settleTime(i) > 0:
		return plan.Unsettled(s.txn.Status.Items[i].Target.String())
	}
	s.settled(i)
	if plan.Definite(err) {
		return s.unresolved(ctx, i, err, also...)
	}
	return s.unresolved(ctx, i, errclass.New(errclass.Terminal, errclass.DeadlineExceeded, "roll back",
		s.txn.Status.Items[i].Target.String(), "not done within spec.timeout (%s): %w", plan.Timeout(s.txn), err), also...)
}

// unresolved records that item i cannot be rolled back and goes on to the next.
func (s *saga) unresolved(ctx context.Context, i int, err error, also ...func(*api.Item)) error {
	return s.record(ctx, func(status *api.TransactionStatus) error {
		return s.giveUp(status, i, err, also...)
	})
}

// giveUp writes into the status that item i cannot be rolled back.
func (s *saga) giveUp(status *api.TransactionStatus, i int, err error, also ...func(*api.Item)) error {
	item := &status.Items[i]
	s.tell(item, i, err)
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

// tell writes into item i why it was refused.
func (s *saga) tell(item *api.Item, i int, err error) {
	cause := plan.ItemCause(s.txn, i, err)
	if !strings.Contains(cause.Message, item.Target.Name) {
		cause.Message = "roll back " + item.Target.String() + ": " + cause.Message
	}
	item.Reason, item.Message = cause.Reason, cause.Message
}

// recover takes up a failed rollback once more.
func (s *saga) recover(ctx context.Context) error {
	if !plan.HasFinalizer(s.txn) {
		if err := s.hold(ctx); err != nil {
			return err
		}
	}
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		return plan.BeginRecovery(s.txn, status, s.clock.Now())
	})
}
