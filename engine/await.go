package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// awaiting waits for changes that are in effect, and done only once a gate says so. What a
// gate says is recorded before anything relies on it.
type awaiting struct {
	*saga
	missing error // what the last look found missing, if nothing was done since
}

// checkReady checks whether what is waited for is ready. What it misses is no reason to wait, as
// long as something else is to be done.
func (s *awaiting) checkReady(ctx context.Context) (err error) {
	s.missing, err = s.checkAll(ctx)
	return err
}

// await waits for what is not ready, as it was found just now or is found again.
func (s *awaiting) await(ctx context.Context) error {
	if s.missing != nil {
		return s.missing
	}
	missing, err := s.checkAll(ctx)
	if err != nil {
		return err
	}
	return missing
}

// checkDue reports whether something is waited for that was not looked at lately, or not
// since its time was over.
func (s *awaiting) checkDue() bool {
	items := awaited(s.txn)
	if len(items) == 0 {
		return false
	}
	ago := s.memory.SinceCheckedReady()
	return ago < 0 || ago >= pollInterval || slices.ContainsFunc(items, func(i int) bool {
		left, limited := readyTimeLeft(s.txn, i, s.clock.Now())
		return limited && left <= 0 && -left < ago
	})
}

// checkAll checks whether what is waited for is done, and starts rolling back if it cannot
// become so or has had its time. It says what is missing if there was nothing to record.
func (s *awaiting) checkAll(ctx context.Context) (missing, err error) {
	s.memory.CheckedReady()
	items := plan.Waiting(s.txn.Status.Items)
	if _, err := s.keepLocks(ctx); err != nil {
		return nil, s.startRollbackIf(ctx, items[0], err)
	}
	if len(plan.BegunAhead(&s.txn.Status, s.clock.Now())) > 0 {
		return nil, s.recordAndOpen(ctx)
	}
	return s.checkItems(ctx, items)
}

func (s *awaiting) checkItems(ctx context.Context, items []int) (wait, err error) {
	var ready []int
	var missing []string
	var unclear error
	for _, i := range items {
		found, err := s.Gates.Ready(ctx, s.txn, i)
		if err == nil && found.Failed {
			return nil, s.startRollback(ctx, neverReady(&s.txn.Status.Items[i], errclass.ReadyFailed, found.Message))
		}
		if err == nil && found.Ready {
			ready = append(ready, i)
			continue
		}
		if plan.Definite(err) {
			return nil, s.startRollback(ctx, plan.ItemCause(s.txn, i, err))
		}
		message := found.Message
		if err != nil {
			unclear, message = err, errclass.Message(err)
		}
		if left, limited := readyTimeLeft(s.txn, i, s.clock.Now()); limited && left <= 0 {
			return nil, s.startRollback(ctx, neverReady(&s.txn.Status.Items[i], errclass.ReadyTimeout,
				fmt.Sprintf("not ready within %s: %s", *plan.ReadyTimeout(s.txn.Spec.Changes[i]), message)))
		}
		missing = append(missing, message)
	}
	if len(ready) > 0 {
		return nil, s.record(ctx, func(status *api.TransactionStatus) error {
			for _, i := range ready {
				status.Items[i].ReadyTime = s.now()
			}
			return nil
		})
	}
	if unclear != nil {
		return unclear, nil
	}
	lacks := &errclass.Error{Op: "waiting for", Target: strings.Join(missing, "; "), Class: errclass.Retryable, Reason: plan.NotReady}
	lacks.RetryAfter = s.pollTime(items)
	return lacks, nil
}

func neverReady(item *api.Item, reason, message string) plan.Cause {
	return plan.Cause{Reason: reason, Message: errclass.Printable(message), Item: item.Name}
}
