package engine

import (
	"context"
	"fmt"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

// goingOn is of a Transaction that makes the others when a change has failed, and rolls nothing back.
type goingOn struct{ *saga }

// fail records that items have failed. refused are those of which it is known that they are not in
// effect although their intents were open; of the others with an open intent that is found out.
// Intents of others for which nothing was sent are withdrawn first: what depends on these items is
// not made.
func (s goingOn) fail(ctx context.Context, causes []plan.Cause, refused map[string]bool) error {
	return s.record(ctx, func(status *api.TransactionStatus) error {
		if err := s.flight.Withdraw(status, api.ItemCommitting, api.ItemPrepared); err != nil {
			return err
		}
		for _, cause := range causes {
			i := plan.IndexOf(status.Items, cause.Item)
			if i < 0 {
				return fmt.Errorf("no item has the name %q", cause.Item)
			}
			if err := plan.FailItem(s.txn, status, i, cause, s.clock.Now()); err != nil {
				return err
			}
			if refused[cause.Item] {
				if err := plan.SettleFailed(&status.Items[i], api.ItemRejected); err != nil {
					return err
				}
			}
		}
		return plan.SkipDependents(s.txn, status.Items)
	})
}

// stop records that nothing further is made.
func (s goingOn) stop(ctx context.Context, cause plan.Cause) error {
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		if err := s.flight.Withdraw(status, api.ItemCommitting, api.ItemPrepared); err != nil {
			return err
		}
		return plan.LeaveUnmade(s.txn, status, cause, s.clock.Now())
	})
}

// settle finds out what has become of the change of an item that has failed, as a rollback does: "not
// applied" is believed only after the settle time. One that turns out to be in effect has not failed.
func (s goingOn) settle(ctx context.Context, i int) error {
	observe, err := s.observer(i, api.ItemCommitting, s.warner(i))
	if err != nil {
		return err
	}
	finding, err := observe(ctx)
	if err == nil && finding == outcome.NotApplied {
		if s.settleTime(i) > 0 {
			return s.keepUntilSettled(ctx, i)
		}
		finding, err = observe(ctx) // One answer may be of before the change.
	}
	switch {
	case err != nil && !plan.Definite(err) && !plan.Overdue(s.txn, s.clock.Now()):
		return err
	case err != nil && errclass.ClassOf(err) != errclass.Unknown && s.settleTime(i) > 0:
		return s.keepUntilSettled(ctx, i) // Nobody would guard the target from what lands after that.
	case err != nil:
		return s.settled(ctx, i, api.ItemUnresolved, err, true)
	case finding == outcome.Applied:
		s.memory.Settled(i)
		s.flight.Happened(i, plan.Ended)
		return s.recordAndOpen(ctx)
	case finding == outcome.Applying:
		return s.settled(ctx, i, api.ItemUnresolved, errclass.New(errclass.Conflict, errclass.Terminating, "observe",
			s.txn.Status.Items[i].Target.String(), "it is being deleted, and is not gone yet"), false)
	case finding == outcome.Diverged:
		return s.settled(ctx, i, api.ItemUnresolved, plan.Diverged(s.txn, i), false)
	default:
		return s.settled(ctx, i, api.ItemRejected, nil, false)
	}
}

// settled records what has become of an item. What depends on it is not made.
func (s goingOn) settled(ctx context.Context, i int, state api.ItemState, why error, unsettled bool) error {
	s.memory.Settled(i)
	return s.record(ctx, func(status *api.TransactionStatus) error {
		item := &status.Items[i]
		if why != nil {
			cause := plan.ItemCauseOf(s.txn, i, "find out what became of", why)
			item.Reason, item.Message, item.Unsettled = cause.Reason, cause.Message, unsettled
		}
		if err := plan.SettleFailed(item, state); err != nil {
			return err
		}
		return plan.SkipDependents(s.txn, status.Items)
	})
}

// failItem goes on without an item that has failed, or starts rolling back because of it.
func (s *saga) failItem(ctx context.Context, cause plan.Cause) error {
	if !plan.GoesOn(s.txn) {
		return s.startRollback(ctx, cause)
	}
	return goingOn{s}.fail(ctx, []plan.Cause{cause}, nil)
}

// failItemIf does that for an error of item i that will not heal, and returns any other.
func (s *saga) failItemIf(ctx context.Context, i int, err error) error {
	if plan.Definite(err) && !isJournal(err) {
		return s.failItem(ctx, plan.ItemCause(s.txn, i, err))
	}
	return err
}

// stopMakingIf has nothing further made on an error that will not heal, met at item i and about all of
// them, or starts rolling back; it returns any other.
func (s *saga) stopMakingIf(ctx context.Context, i int, err error) error {
	if plan.GoesOn(s.txn) && plan.Definite(err) && !isJournal(err) {
		return goingOn{s}.stop(ctx, plan.CauseOf(err))
	}
	return s.startRollbackIf(ctx, i, err)
}
