package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// A change may have gates: it is made only if one holds, and is done only once another
// does. What a gate says is recorded before anything relies on it.

// Gates tells whether a change is wanted, and when it is done.
type Gates interface {
	// Admits reports whether the when of a change holds. An error of class Terminal
	// means that this cannot be told.
	Admits(ctx context.Context, t *api.Transaction, item int) (bool, error)
	// Ready checks whether the readyWhen or goneWhen of a change that is in effect holds.
	Ready(ctx context.Context, t *api.Transaction, item int) (Readiness, error)
}

// Readiness is what is known of a change that is waited for.
type Readiness struct {
	// Ready means that it is done, and Failed that it will not be.
	Ready, Failed bool
	// Message says what is missing; it names the object.
	Message string
}

// skip records that the change of item i is not wanted, and so are not those that depend
// on it.
func (s *saga) skip(ctx context.Context, i int) error {
	return s.record(ctx, func(status *api.TransactionStatus) error {
		message := fmt.Sprintf("%s is left as it is: when is false (%s)", status.Items[i].Target.String(), s.txn.Spec.Changes[i].When)
		if err := plan.Skip(&status.Items[i], plan.ReasonWhenFalse, message); err != nil {
			return err
		}
		return plan.SkipDependents(s.txn, status.Items)
	})
}

// look checks whether what is waited for is ready. What it misses is no reason to wait, as
// long as something else is to be done.
func (s *saga) look(ctx context.Context) (err error) {
	s.missing, err = s.lookAround(ctx)
	return err
}

// awaitReady waits for what is not ready, as it was found just now or is found again.
func (s *saga) awaitReady(ctx context.Context) error {
	if s.missing != nil {
		return s.missing
	}
	missing, err := s.lookAround(ctx)
	if err != nil {
		return err
	}
	return missing
}

// lookDue reports whether something is waited for that was not looked at lately, or not
// since its time was over.
func (s *saga) lookDue() bool {
	items := s.awaited()
	if len(items) == 0 {
		return false
	}
	var ago time.Duration
	now := s.clock.Now()
	s.know(func(m *memory) { ago = now.Sub(m.looked) })
	return ago < 0 || ago >= pollInterval || slices.ContainsFunc(items, func(i int) bool {
		left, limited := s.readyTimeLeft(i)
		return limited && left <= 0 && -left < ago
	})
}

// awaited lists the items that are waited for while changes are made. While the
// Transaction is suspended, or when it is deleted, none is.
func (s *saga) awaited() []int {
	if s.txn.Status.Phase != api.PhaseCommitting || plan.Suspended(s.txn) || s.txn.DeletionTimestamp != nil {
		return nil
	}
	return plan.Waiting(s.txn.Status.Items)
}

// lookAround checks whether what is waited for is done, and turns round if it cannot
// become so or has had its time. It says what is missing if there was nothing to record.
func (s *saga) lookAround(ctx context.Context) (missing, err error) {
	s.know(func(m *memory) { m.looked = s.clock.Now() })
	items := plan.Waiting(s.txn.Status.Items)
	if err := s.keep(ctx); err != nil {
		return nil, s.turnOr(ctx, items[0], err)
	}
	if len(plan.BegunAhead(&s.txn.Status, s.clock.Now())) > 0 {
		return nil, s.record(ctx, func(*api.TransactionStatus) error { return nil })
	}
	return s.readiness(ctx, items)
}

func (s *saga) readiness(ctx context.Context, items []int) (wait, err error) {
	var ready []int
	var missing []string
	var unclear error
	for _, i := range items {
		found, err := s.Gates.Ready(ctx, s.txn, i)
		if err == nil && found.Failed {
			return nil, s.turn(ctx, s.neverReady(i, errclass.ReadyFailed, found.Message))
		}
		if err == nil && found.Ready {
			ready = append(ready, i)
			continue
		}
		if plan.Definite(err) {
			return nil, s.turn(ctx, plan.ItemCause(s.txn, i, err))
		}
		message := found.Message
		if err != nil {
			unclear, message = err, errclass.Message(err)
		}
		if left, limited := s.readyTimeLeft(i); limited && left <= 0 {
			return nil, s.turn(ctx, s.neverReady(i, errclass.ReadyTimeout,
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
	lacks.RetryAfter = s.lookAgain(items)
	return lacks, nil
}

func (s *saga) neverReady(i int, reason, message string) plan.Cause {
	return plan.Cause{Reason: reason, Message: errclass.Printable(message), Item: s.txn.Status.Items[i].Name}
}

// lookAgain is how long to wait before what is waited for is looked at again.
func (s *saga) lookAgain(items []int) time.Duration {
	wait := s.pollTime()
	for _, i := range items {
		left, limited := s.readyTimeLeft(i)
		switch {
		case limited && left > 0:
			wait = min(wait, left)
		case limited:
			wait = min(wait, pollInterval) // What is done now comes before it.
		}
	}
	return wait
}

// readyTimeLeft is how much longer item i may take to be ready, if that is limited. Its
// time is kept by the second.
func (s *saga) readyTimeLeft(i int) (time.Duration, bool) {
	if i >= len(s.txn.Spec.Changes) {
		return 0, false // Another client has cut the spec short.
	}
	limit := plan.ReadyTimeout(s.txn.Spec.Changes[i])
	if limit == nil {
		return 0, false
	}
	end := s.txn.Status.Items[i].WaitStartTime.Add(time.Second + plan.Duration(limit, plan.DefaultTimeout))
	return end.Sub(s.clock.Now()), true
}
