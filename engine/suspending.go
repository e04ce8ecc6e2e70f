package engine

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// A Transaction that is suspended stands still between two changes, or two
// compensations: what is in flight is finished first. Its locks stay held, and its time
// does not run. Whoever cancels or deletes it wants it to end, so that counts for more.

// suspend records that the Transaction stands still. Compensations for which nothing was
// sent are not about to be made any more: whoever comes next could not tell them from
// those that have begun.
func (s *saga) suspend(ctx context.Context) error {
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		if err := s.withdrawUndos(status); err != nil {
			return err
		}
		status.SuspendTime = s.now()
		if !plan.Accepted(s.txn) {
			status.ObservedGeneration = s.txn.Generation
		}
		return plan.MovePhase(status, plan.OrPending(status.Phase))
	})
}

// rest keeps what a suspended Transaction holds, and says when that is to be done again.
// That another has a lock now shows when it goes on.
func (s *saga) rest(ctx context.Context) (time.Duration, error) {
	switch s.txn.Status.Phase {
	case api.PhasePrepared, api.PhaseCommitting, api.PhaseRollingBack:
	default:
		return 0, nil
	}
	if err := s.keep(ctx); err != nil && (isJournal(err) || !plan.Definite(err) && !errclass.Is(err, errclass.LockLost)) {
		return 0, err
	}
	return plan.LockTimeout(s.txn) / 4, nil
}

// resume goes on after a suspension. A rollback has its whole time again.
func (s *saga) resume(ctx context.Context) error {
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		if status.StartTime != nil {
			rest := max(0, s.clock.Since(status.SuspendTime.Time)).Truncate(time.Second)
			status.SuspendedSeconds += int64(rest / time.Second)
			for _, i := range plan.Waiting(status.Items) {
				later := metav1.NewTime(status.Items[i].WaitStartTime.Add(rest))
				status.Items[i].WaitStartTime = &later
			}
		}
		if status.Phase == api.PhaseRollingBack {
			status.RollbackStartTime = s.now()
		}
		status.SuspendTime = nil
		return nil
	})
}

// spare parks item i, whose compensation this process or another may have begun, if none of
// it is in effect, nor can come to be. One that was made in part is finished.
func (s *saga) spare(ctx context.Context, i int) error {
	if _, ok := s.undone(i); ok {
		return s.undo(ctx, i)
	}
	if !s.mine() {
		if err := s.outwait(ctx); err != nil {
			return err
		}
	}
	in, err := s.intent(i, api.ItemRollingBack)
	if err != nil {
		return err
	}
	finding, err := s.Changes.Observe(ctx, in)
	if err == nil && plan.InEffect(finding) && !s.flight.known[i].NoEffect() {
		if s.settleTime(i) > 0 {
			return s.stay(ctx, i)
		}
		finding, err = s.Changes.Observe(ctx, in) // One answer may be of before the compensation.
	}
	switch {
	case err != nil && !plan.Definite(err):
		return s.unresolvedOr(ctx, i, err)
	case err != nil || !plan.InEffect(finding):
		return s.undo(ctx, i) // It tells of an error that it meets, too.
	}
	s.settled(i)
	s.park(i)
	return nil
}

// park leaves item i as it is, and with it the earlier changes of its object. A recovery
// opens them all at once, and rolls them back one after the other, the latest first.
func (s *saga) park(i int) {
	own := s.txn.Status.Items[i].Target.Identity()
	for j := range s.txn.Status.Items {
		item := &s.txn.Status.Items[j]
		if j == i || item.State == api.ItemRollingBack && s.flight.known[j] != plan.Over && item.Target.Identity() == own {
			s.flight.happened(j, plan.Left)
		}
	}
}

// outwait gives what others may be about to send its time. Who recorded the intents is told
// by a checkpoint, and sends nothing more once they have seen that. There is one for each
// version of the spec: who writes the status later has read that nothing further is to be
// rolled back, and two processes that began again because of each other would never come to
// an end.
func (s *saga) outwait(ctx context.Context) error {
	told := false
	s.know(func(m *memory) { told = m.spared == s.txn.Generation })
	if told {
		return nil
	}
	if err := s.takeOver(ctx); err != nil {
		return err
	}
	s.know(func(m *memory) {
		clear(m.asked)
		m.spared = s.txn.Generation
	})
	return nil
}

// leave records that the changes which are in effect are left so.
func (s *saga) leave(ctx context.Context) error {
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		for i := range status.Items {
			item := &status.Items[i]
			unmade := item.State == api.ItemRollingBack && (s.flight.known[i] == plan.Unsent || s.flight.known[i].IsParked())
			if item.State != api.ItemCommitted && !unmade {
				continue
			}
			item.Reason, item.SetAside = errclass.Cancelled, false
			item.Message = fmt.Sprintf("%s is left as the change made it, because spec.cancel is Stop; set it to Rollback to roll this back", item.Target.String())
			if err := plan.MoveItem(item, api.ItemUnresolved); err != nil {
				return err
			}
		}
		return nil
	})
}

// letGoAgain undoes the beginning of a recovery that was not to be when it began.
func (s *saga) letGoAgain(ctx context.Context) error {
	if err := s.letGo(ctx, true); err != nil {
		return err
	}
	return s.removeFinalizer(ctx)
}

// seen records that a Transaction that has ended was looked at since its spec was changed,
// or the clock was put right.
func (s *saga) seen(ctx context.Context) error {
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		status.ObservedGeneration = s.txn.Generation
		return nil
	})
}
