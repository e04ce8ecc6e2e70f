package engine

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// guarding judges the guards again that were found ready: right before the first change is
// begun, and right before the Transaction is committed.
type guarding struct{ *saga }

// beforeFirst judges them before the first change. It reports whether that may be begun: if not,
// and without an error, a rollback has begun.
func (s guarding) beforeFirst(ctx context.Context) (may bool, err error) {
	cause, err := s.judge(ctx, "the first change")
	if err != nil {
		return false, err
	}
	if cause != nil {
		return false, s.startRollback(ctx, *cause)
	}
	return true, nil
}

// beforeCommit judges them once all changes are in effect, and records that they hold. After that
// they are judged no more: the end hands fields over, which cannot be rolled back.
func (s guarding) beforeCommit(ctx context.Context) error {
	cause, err := s.judge(ctx, "the commit")
	if err != nil && !isJournal(err) && plan.Overdue(s.txn, s.clock.Now()) {
		late := plan.ItemCause(s.txn, plan.Guards(s.txn.Status.Items)[0], err)
		late.Reason, late.Message = errclass.DeadlineExceeded, errclass.Printable(fmt.Sprintf("it could not be judged within spec.timeout (%s) whether it still holds: %s", plan.Timeout(s.txn), late.Message))
		cause, err = &late, nil
	}
	if err != nil {
		return err
	}
	if cause != nil {
		return s.startRollback(ctx, *cause)
	}
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		status.GuardTime = s.now()
		return nil
	})
}

// judge returns why a guard does not hold any more; nil if all do. An error is worth another try.
func (s guarding) judge(ctx context.Context, before string) (*plan.Cause, error) {
	guards := plan.Guards(s.txn.Status.Items)
	if _, err := s.keepLocks(ctx); err != nil {
		if plan.Definite(err) && !isJournal(err) {
			return new(plan.ItemCause(s.txn, guards[0], err)), nil
		}
		return nil, err
	}
	for _, i := range guards {
		found, err := s.Gates.Ready(ctx, s.txn, i)
		switch {
		case plan.Definite(err):
			return new(plan.ItemCause(s.txn, i, err)), nil
		case err != nil:
			return nil, err
		}
		if why := broken(&s.txn.Status.Items[i], found); why != "" {
			return s.noLonger(i, before, why), nil
		}
	}
	return nil, nil
}

// broken says why a guard does not hold any more; empty if it does.
func broken(item *api.Item, found Readiness) string {
	switch {
	case found.Failed, !found.Ready:
		return found.Message
	case found.UID != item.GuardUID:
		return fmt.Sprintf("%s is not the object that it was when it was found ready: it was %s, and is %s", item.Target.String(), uidOf(item.GuardUID), uidOf(found.UID))
	}
	return ""
}

func uidOf(uid types.UID) string {
	if uid == "" {
		return "absent"
	}
	return "uid " + string(uid)
}

func (s guarding) noLonger(i int, before, why string) *plan.Cause {
	result := api.ConditionResult{Condition: api.ConditionReadyWhen, Time: *s.now(), Message: why}
	return &plan.Cause{
		Reason: errclass.GuardBroken, Item: s.txn.Status.Items[i].Name, Result: &result,
		Message: errclass.Printable(fmt.Sprintf("the guard held, and does not right before %s: %s", before, why)),
	}
}
