package engine

import (
	"context"

	"janus.io/janus/engine/plan"
)

// stepper carries out what plan.Decide says, one step after the other.
type stepper struct {
	*saga
	waits    awaiting
	repeated standstill
}

// inFlight is what plan.Decide has to know.
func (s *stepper) inFlight() plan.InFlight {
	return plan.InFlight{
		Known:         s.flight.Known,
		Due:           s.due(),
		ReadyCheckDue: s.waits.checkDue(),
	}
}

// perform carries an action out. This is the one table of which phase does what.
func (s *stepper) perform(ctx context.Context, a plan.Action) error {
	if a.Verb != plan.AwaitReady {
		s.waits.missing = nil
	}
	if a.Verb != plan.AwaitReady && a.Verb != plan.CheckReady {
		s.waits.round = nil // It knows nothing of what is waited for since.
	}
	switch a.Verb {
	case plan.AddFinalizer:
		return s.addFinalizer(ctx)
	case plan.Validate:
		return preflight{s.saga}.validate(ctx)
	case plan.Approve:
		return approving{s.saga}.approve(ctx)
	case plan.StandAgain:
		return approving{s.saga}.standAgain(ctx)
	case plan.Prepare:
		return preparing{s.saga}.prepare(ctx)
	case plan.Begin:
		return committing{s.saga}.begin(ctx)
	case plan.Capture:
		return committing{s.saga}.capture(ctx, a.Item)
	case plan.Open:
		return committing{s.saga}.open(ctx)
	case plan.CheckReady:
		return s.waits.checkReady(ctx)
	case plan.AwaitReady:
		return s.waits.await(ctx)
	case plan.Do:
		return committing{s.saga}.do(ctx, a.Items)
	case plan.Observe:
		return committing{s.saga}.resolve(ctx, a.Item)
	case plan.Record, plan.OpenUndo:
		return s.recordAndOpen(ctx)
	case plan.Finish:
		return ending{s.saga}.finish(ctx)
	case plan.Fail:
		return ending{s.saga}.fail(ctx, a.Cause)
	case plan.StartRollback:
		return s.startRollback(ctx, a.Cause)
	case plan.Settle:
		return goingOn{s.saga}.settle(ctx, a.Item)
	case plan.StopMaking:
		return goingOn{s.saga}.stop(ctx, a.Cause)
	default:
		return s.performUndo(ctx, a)
	}
}

// performUndo is perform for a Transaction that is rolled back, stands still or has ended.
func (s *stepper) performUndo(ctx context.Context, a plan.Action) error {
	switch a.Verb {
	case plan.ObserveUndo:
		return rollback{s.saga}.settle(ctx, a.Item)
	case plan.Undo:
		return rollback{s.saga}.undo(ctx, a.Items)
	case plan.RetryUndos:
		return rollback{s.saga}.retrySetAside(ctx)
	case plan.LeaveUndo:
		return rollback{s.saga}.leave(ctx, a.Items)
	case plan.SkipUndo:
		return stop{s.saga}.skipUndo(ctx, a.Item)
	case plan.FinishUndo:
		return ending{s.saga}.finishUndo(ctx)
	case plan.Recover:
		return rollback{s.saga}.recover(ctx)
	case plan.Suspend:
		return suspension{s.saga}.suspend(ctx)
	case plan.Resume:
		return suspension{s.saga}.resume(ctx)
	case plan.AcceptPartial:
		return stop{s.saga}.acceptPartial(ctx)
	case plan.ObserveGeneration:
		return ending{s.saga}.observeGeneration(ctx)
	case plan.CleanUp:
		return cleanup{s.saga}.removeAll(ctx)
	default:
		return ending{s.saga}.abandon(ctx)
	}
}
