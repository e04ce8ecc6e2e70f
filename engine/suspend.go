package engine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// suspension is of a Transaction that stands still between two changes, or two
// compensations: what is in flight is finished first. Its locks stay held, and its time
// does not run. Anyone who cancels or deletes it wants it to end, so that counts for more.
type suspension struct{ *saga }

// suspend records that the Transaction stands still. Compensations for which nothing was
// sent are not about to be made any more: anyone who comes next could not tell them from
// those that have begun.
func (s suspension) suspend(ctx context.Context) error {
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		if err := s.flight.Withdraw(status, api.ItemRollingBack, api.ItemCommitted); err != nil {
			return err
		}
		status.SuspendTime = s.now()
		if !plan.Accepted(s.txn) {
			status.ObservedGeneration = s.txn.Generation
		}
		return plan.MovePhase(status, plan.OrPending(status.Phase))
	})
}

// stay keeps what a suspended Transaction holds, and says when that is to be done again.
// That another has a lock now shows when it goes on.
func (s suspension) stay(ctx context.Context) (time.Duration, error) {
	switch s.txn.Status.Phase {
	case api.PhasePrepared, api.PhaseCommitting, api.PhaseRollingBack:
	default:
		return 0, nil
	}
	if _, err := s.keepLocksIfPossible(ctx); err != nil {
		return 0, err
	}
	return plan.LockTimeout(s.txn) / 4, nil
}

// resume goes on after a suspension. A rollback has its whole time again.
func (s suspension) resume(ctx context.Context) error {
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		if status.StartTime != nil {
			rest := max(0, s.clock.Since(status.SuspendTime.Time)).Truncate(time.Second)
			status.SuspendedSeconds += int64(rest / time.Second)
			if plan.Standing(s.txn) {
				later := metav1.NewTime(status.Approval.RequestTime.Add(rest))
				status.Approval.RequestTime = &later
			}
			for _, i := range plan.Awaited(s.txn) {
				if times := plan.TimesOf(&status.Items[i]); *times.Start != nil {
					later := metav1.NewTime((*times.Start).Add(rest))
					*times.Start, *times.Hold = &later, nil // Nobody has looked meanwhile.
				}
			}
		}
		if status.Phase == api.PhaseRollingBack {
			status.RollbackStartTime = s.now()
		}
		status.SuspendTime = nil
		return nil
	})
}
