package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

func uid(s string) types.UID { return types.UID(s) }

// begin records the first intents.
func (s *saga) begin(ctx context.Context) error {
	return s.openIn(ctx, func(status *api.TransactionStatus) error {
		return plan.MovePhase(status, api.PhaseCommitting)
	})
}

// open records intents that the checkpoint before did not open.
func (s *saga) open(ctx context.Context) error {
	if plan.Spacing(s.txn) > 0 {
		if left := s.paceTime(); left > 0 {
			return s.await(ctx, left)
		}
	}
	return s.openIn(ctx, func(*api.TransactionStatus) error { return nil })
}

// record writes a checkpoint that also opens the intents of the next items, unless they
// have to wait for their turn.
func (s *saga) record(ctx context.Context, change func(*api.TransactionStatus) error) error {
	if plan.Spacing(s.txn) > 0 && s.txn.Status.Phase != api.PhaseRollingBack {
		return s.checkpoint(ctx, change)
	}
	return s.openIn(ctx, change)
}

// openIn writes a checkpoint that also opens the intents of the next items, as far as
// their before-images are saved and nothing has to be written in between. That is what
// makes the price of many items one status write.
func (s *saga) openIn(ctx context.Context, change func(*api.TransactionStatus) error) error {
	err := s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		if err := change(status); err != nil {
			return err
		}
		if plan.Suspended(s.txn) {
			return nil
		}
		if status.Phase == api.PhaseRollingBack {
			return s.openUndos(status)
		}
		return s.openNext(status)
	})
	if err == nil && plan.Spacing(s.txn) > 0 && s.flight.known.Any(plan.Unsent) {
		s.know(func(m *memory) { m.begun = s.clock.Now() })
	}
	return err
}

func (s *saga) openNext(status *api.TransactionStatus) error {
	most := s.policy.Window
	if plan.Spacing(s.txn) > 0 {
		most = 1
	}
	for _, i := range plan.ScheduleOf(s.txn).Window(s.txn.Spec.Changes, status.Items, most) {
		if err := plan.MoveItem(&status.Items[i], api.ItemCommitting); err != nil {
			return err
		}
	}
	return nil
}

// capture takes the before-image of an item that could not be prepared before: an
// earlier item has changed its target by now, or it is only now known to be wanted.
func (s *saga) capture(ctx context.Context, i int) error {
	if plan.Spacing(s.txn) > 0 {
		// Whether it is wanted is asked when its turn comes.
		if left := s.paceTime(); left > 0 {
			return s.await(ctx, left)
		}
	}
	if err := s.keep(ctx); err != nil {
		return s.turnOr(ctx, i, err)
	}
	if s.txn.Spec.Changes[i].When != "" {
		wanted, err := s.Gates.Admits(ctx, s.txn, i)
		if err != nil {
			return s.turnOr(ctx, i, err)
		}
		if !wanted {
			return s.skip(ctx, i)
		}
	}
	s.setLoose(true)
	saved, err := s.Planner.Prepare(ctx, s.txn, []int{i}, s.doubt)
	if err != nil {
		return s.turnOr(ctx, i, err)
	}
	s.know(func(m *memory) { m.images = saved.Ref })
	err = s.record(ctx, func(status *api.TransactionStatus) error {
		return recordImages(status, []int{i}, saved)
	})
	if err == nil {
		s.setLoose(false)
	}
	return err
}

// keep keeps the locks. What is late is not to take locks again that another process
// has released: nobody would release them once more.
func (s *saga) keep(ctx context.Context) error {
	if err := s.confirm(ctx, false); err != nil {
		return err
	}
	return s.Locks.Keep(ctx, s.txn, s.doubt)
}

// do makes changes whose intents this process has recorded, side by side if there are
// several.
func (s *saga) do(ctx context.Context, these []int) error {
	if err := s.keep(ctx); err != nil {
		return s.turnOr(ctx, these[0], err)
	}
	return s.send(ctx, these...)
}

// resolve goes on with an intent that this run found open, or whose outcome it
// does not know: the target says whether the change is in effect.
func (s *saga) resolve(ctx context.Context, i int) error {
	if err := s.keep(ctx); err != nil {
		return s.turnOr(ctx, i, err)
	}
	in, err := s.intent(i, api.ItemCommitting)
	if err != nil {
		return err
	}
	in.warn = s.warner(i)
	finding, err := s.Changes.Observe(ctx, in)
	if err != nil {
		return s.turnOr(ctx, i, err)
	}
	switch finding {
	case outcome.Applied:
		s.isOver(i)
		return nil
	case outcome.Diverged:
		return s.turn(ctx, plan.ItemCause(s.txn, i, plan.Diverged(s.txn, i)))
	case outcome.Applying:
		s.unsure(i)
		return s.send(ctx, i)
	}
	if plan.Suspended(s.txn) {
		s.flight.happened(i, plan.Left)
		return nil
	}
	if s.txn.Spec.Changes[i].Type == api.Create {
		// It is asked again where it counts; until then there is nothing to write.
		if err := s.mayCreate(i); err != nil {
			return err
		}
	}
	return s.send(ctx, i)
}

// warner notes the warnings about a change that is found to be in effect.
func (s *saga) warner(i int) func([]string) {
	return func(warnings []string) { s.flight.told(i).said = warnings }
}

// takeOver makes an intent that another process may have recorded this run's own.
// Whoever recorded it, should they still be alive, can write no checkpoint after
// that: a refusal that they meet because of what this run sends is then not taken
// for proof that the change is not in effect. What the status says, such as what
// it waits for, stays.
func (s *saga) takeOver(ctx context.Context) error {
	next := s.txn.DeepCopy()
	for i := range next.Status.Conditions {
		next.Status.Conditions[i].ObservedGeneration = next.Generation
	}
	return s.store(ctx, next)
}

// refused deals with a refusal that proves nothing: an earlier request for the same
// change may have landed. That is then the conflict that this one met, and the
// change is in effect.
func (s *saga) refused(ctx context.Context, in Intent, refusal error) error {
	if errclass.ClassOf(refusal) == errclass.Conflict {
		in.warn = s.warner(in.Index())
		if finding, err := s.Changes.Observe(ctx, in); err == nil && finding == outcome.Applied {
			s.isOver(in.Index())
			return nil
		}
	}
	return s.turn(ctx, plan.ItemCause(s.txn, in.Index(), refusal))
}

// reject records that changes were refused, and turns round because of the first. Of one
// that an earlier request may have made it is found out while rolling back.
func (s *saga) reject(ctx context.Context, refused []*sent) error {
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		for _, c := range refused {
			i := c.in.Index()
			cause, item := plan.ItemCause(s.txn, i, c.err), &status.Items[i]
			item.Reason, item.Message = cause.Reason, cause.Message
			if !s.flight.known[i].NoEffect() {
				continue
			}
			if err := plan.MoveItem(item, api.ItemRejected); err != nil {
				return err
			}
		}
		return s.turnStatus(status, plan.ItemCause(s.txn, refused[0].in.Index(), refused[0].err))
	})
}

// turnOr turns round because of item i on an error that will not heal, and waits
// on any other.
func (s *saga) turnOr(ctx context.Context, i int, err error) error {
	if plan.Definite(err) && !isJournal(err) {
		return s.turn(ctx, plan.ItemCause(s.txn, i, err))
	}
	return err
}

// turn stops committing and starts rolling back.
func (s *saga) turn(ctx context.Context, cause plan.Cause) error {
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		if i := plan.IndexOf(status.Items, cause.Item); i >= 0 {
			status.Items[i].Reason, status.Items[i].Message = cause.Reason, cause.Message
		}
		return s.turnStatus(status, cause)
	})
}

func (s *saga) turnStatus(status *api.TransactionStatus, cause plan.Cause) error {
	if err := s.withdraw(status); err != nil {
		return err
	}
	plan.SetCause(status, s.txn.Generation, s.clock.Now(), cause)
	status.RollbackStartTime = s.now()
	return plan.MovePhase(status, api.PhaseRollingBack)
}
