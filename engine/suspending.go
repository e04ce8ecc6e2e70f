package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

// A Transaction that is suspended stands still between two changes, or two
// compensations: what is in flight is finished first. Its locks stay held, and its time
// does not run. Whoever cancels or deletes it wants it to end, so that counts for more.

// suspended reports whether nothing further is to be begun.
func suspended(t *api.Transaction) bool {
	return t.Spec.Suspend && t.Spec.Cancel == "" && t.DeletionTimestamp == nil
}

// sparing reports whether nothing further is to be rolled back.
func sparing(t *api.Transaction) bool {
	return suspended(t) || t.Spec.Cancel == api.CancelStop
}

// standStill records that the Transaction is suspended, once.
func standStill(t *api.Transaction) Action {
	if t.Status.SuspendTime == nil {
		return Action{Verb: Suspend}
	}
	return Action{Verb: Rest}
}

// accepted reports whether a Transaction has been validated.
func accepted(t *api.Transaction) bool {
	return t.Status.Phase != "" && t.Status.Phase != api.PhasePending
}

// suspend records that the Transaction stands still. Compensations for which nothing was
// sent are not about to be made any more: whoever comes next could not tell them from
// those that have begun.
func (s *saga) suspend(ctx context.Context) error {
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		if err := s.withdrawUndos(status); err != nil {
			return err
		}
		status.SuspendTime = s.now()
		if !accepted(s.txn) {
			status.ObservedGeneration = s.txn.Generation
		}
		return movePhase(status, orPending(status.Phase))
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
	if err := s.keep(ctx); err != nil && (isJournal(err) || !definite(err) && !errclass.Is(err, errclass.LockLost)) {
		return 0, err
	}
	return LockTimeout(s.txn) / 4, nil
}

// resume goes on after a suspension. A rollback has its whole time again.
func (s *saga) resume(ctx context.Context) error {
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		if status.StartTime != nil {
			rest := max(0, s.clock.Since(status.SuspendTime.Time)).Truncate(time.Second)
			status.SuspendedSeconds += int64(rest / time.Second)
			for _, i := range waiting(status.Items) {
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

// suspension returns the conditions that tell whether a Transaction stands still; none
// before it ever has.
func suspension(status *api.TransactionStatus) []condition {
	if status.SuspendTime != nil {
		message := fmt.Sprintf("suspended; %s changes are in effect, and nothing further is begun until spec.suspend is false or spec.cancel is set", status.Progress)
		return []condition{
			{api.ConditionSuspended, yes, reasonSuspended, message},
			{api.ConditionReady, no, reasonSuspended, message},
			{api.ConditionReconciling, yes, reasonSuspended, message},
		}
	}
	if meta.FindStatusCondition(status.Conditions, api.ConditionSuspended) == nil {
		return nil
	}
	return []condition{{api.ConditionSuspended, no, reasonResumed, "spec.suspend does not hold the Transaction up"}}
}

func orPending(phase api.Phase) api.Phase {
	if phase == "" {
		return api.PhasePending
	}
	return phase
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
	if err == nil && inEffect(finding) && !s.flight.sure[i] {
		if s.settleTime(i) > 0 {
			return s.stay(ctx, i)
		}
		finding, err = s.Changes.Observe(ctx, in) // One answer may be of before the compensation.
	}
	switch {
	case err != nil && !definite(err):
		return s.unresolvedOr(ctx, i, err)
	case err != nil || !inEffect(finding):
		return s.undo(ctx, i) // It tells of an error that it meets, too.
	}
	s.settled(i)
	s.park(i)
	return nil
}

// park leaves item i as it is, and with it the earlier changes of its object. A recovery
// opens them all at once, and rolls them back one after the other, the latest first.
func (s *saga) park(i int) {
	own := identity(s.txn.Status.Items[i].Target)
	for j := range s.txn.Status.Items {
		item := &s.txn.Status.Items[j]
		if j == i || item.State == api.ItemRollingBack && !s.flight.over[j] && identity(item.Target) == own {
			s.flight.parked[j] = true
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

func inEffect(finding outcome.Finding) bool {
	return finding == outcome.Applied || finding == outcome.Applying
}

// leave records that the changes which are in effect are left so.
func (s *saga) leave(ctx context.Context) error {
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		for i := range status.Items {
			item := &status.Items[i]
			unmade := item.State == api.ItemRollingBack && (s.flight.fresh[i] || s.flight.parked[i])
			if item.State != api.ItemCommitted && !unmade {
				continue
			}
			item.Reason, item.SetAside = errclass.Cancelled, false
			item.Message = fmt.Sprintf("%s is left as the change made it, because spec.cancel is Stop; Rollback takes it back", Describe(item.Target))
			if err := moveItem(item, api.ItemUnresolved); err != nil {
				return err
			}
		}
		return nil
	})
}

// stoppedWith says what is in effect of a Transaction that was stopped, if nothing but
// that is why.
func stoppedWith(status *api.TransactionStatus, unresolved []string) (string, bool) {
	var names []string
	for i := range status.Items {
		if item := &status.Items[i]; left(item) {
			names = append(names, fmt.Sprintf("%s (%s)", item.Name, Describe(item.Target)))
		}
	}
	if len(names) < len(unresolved) {
		return "", false
	}
	_, cause := causeOnRecord(status)
	return errclass.Printable(fmt.Sprintf("%s; stopped, and left in effect: items %s; set spec.cancel to Rollback to take them back",
		cause, strings.Join(names, ", "))), true
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

// Unchanged reports whether the spec is as it was accepted, but for suspend and cancel.
func Unchanged(t *api.Transaction) bool {
	if t.Status.SpecDigest == "" {
		return t.Generation == t.Status.ObservedGeneration
	}
	return t.Status.SpecDigest == specDigest(&t.Spec)
}

// specDigest is of all that may not change in a spec.
func specDigest(spec *api.TransactionSpec) string {
	fixed := *spec
	fixed.Suspend, fixed.Cancel = false, ""
	if fixed.UndoOf != nil {
		fixed.Changes = nil // They follow from it.
	}
	text, err := json.Marshal(fixed)
	if err != nil {
		return "" // Content that came in as JSON goes out as JSON.
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
