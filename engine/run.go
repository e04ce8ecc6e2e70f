package engine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// Result says when a Transaction wants to be looked at again.
type Result struct {
	// After is a wait of known length; zero means that there is none.
	After time.Duration
	// Awaited are the objects whose changes may end that wait sooner. Who is told of what happens
	// to each of them may come back after Told instead; there is none where After counts. They are
	// to be seen as Account, which is the ServiceAccount of the Transaction.
	Awaited []errclass.Awaited
	Account types.NamespacedName
	Told    time.Duration
	// Err is an error after which the Transaction is to be tried again with
	// back-off. It is never one that the Transaction has ended with: those are in
	// its status.
	Err error
	// Within bounds the back-off after Err: when it is over so is the time of the
	// Transaction, or of something that it waits for. Zero means no bound.
	Within time.Duration
	// Progressed says that something has succeeded in this run, before Err: the back-off
	// begins again.
	Progressed bool
}

// Idle reports whether there is no reason to come back.
func (r Result) Idle() bool { return r.After == 0 && r.Err == nil }

// Run takes a Transaction, as just read from the API server, as far as it goes:
// until it ends, has to wait, or ctx is done. A step in flight is finished even
// when ctx is done, but for a pre-flight, which is resumed by the next run.
func (e *Engine) Run(ctx context.Context, t *api.Transaction) Result {
	s := e.saga(t)
	e.recall(s)
	result := s.run(ctx)
	if result.Err != nil {
		result.Progressed = plan.Progressed(&t.Status, &s.txn.Status)
	}
	return result
}

// run carries out what is decided, one step after the other.
func (s *saga) run(ctx context.Context) Result {
	steps := &stepper{saga: s, waits: awaiting{saga: s}}
	whole := context.WithoutCancel(ctx) // of a step
	for ctx.Err() == nil {
		action := plan.Decide(s.txn, steps.inFlight(), s.clock.Now(), s.policy)
		switch action.Verb {
		case plan.Nothing:
			result := cleanup{s}.removeLeftovers(whole, false)
			if result.Idle() {
				return expire(whole, s)
			}
			return result
		case plan.Await:
			return Result{After: action.At.Sub(s.clock.Now())}
		case plan.StaySuspended:
			after, err := suspension{s}.stay(whole)
			if err != nil {
				return retry{s}.pause(whole, err)
			}
			return Result{After: after}
		}
		s.beginStep(ctx)
		if err := steps.repeated.decided(s, action); err != nil {
			return retry{s}.pause(whole, err)
		}
		if err := steps.perform(whole, action); err != nil {
			return retry{s}.pause(whole, err)
		}
		if s.gone {
			return Result{}
		}
	}
	return Result{Err: s.recordEnded(whole)}
}

// recall begins with what this process knows of the Transaction. If another client has
// written it since, another process may have given its locks back.
func (e *Engine) recall(s *saga) {
	if s.memory.Overtaken() {
		s.Locks.Distrust(s.txn)
	}
	if flight := e.memories.Recall(s.txn); flight != nil {
		s.flight = flight
	}
}

// Vanished removes what this process has made for a Transaction of that name that is
// gone: it was late with it, and another process has finished it.
func (e *Engine) Vanished(ctx context.Context, name types.NamespacedName) Result {
	for _, t := range e.memories.Named(name) {
		s := e.saga(t)
		// A server that is behind may not know of it.
		if wait := e.policy.SettleTime - s.memory.GoneFor(); wait > 0 {
			return Result{After: wait}
		}
		if result := (cleanup{s}).removeLeftovers(context.WithoutCancel(ctx), true); !result.Idle() {
			return result
		}
	}
	return Result{}
}

// CleanUp removes the leftovers of a Transaction that has ended, and does nothing else about it.
func (e *Engine) CleanUp(ctx context.Context, t *api.Transaction) Result {
	if !t.Status.Phase.Terminal() {
		return Result{}
	}
	return cleanup{e.saga(t)}.removeLeftovers(context.WithoutCancel(ctx), false)
}

// Tidy is for a process that is about to end, and whose last run of a Transaction was
// overtaken by another process. It does what the next run would: it removes what that
// process may have overlooked, if the Transaction has ended. If not, the one that ends it
// removes that too.
func (e *Engine) Tidy(ctx context.Context, t *api.Transaction) error {
	if !t.Status.Phase.Terminal() {
		return nil
	}
	return cleanup{e.saga(t)}.removeLeftovers(ctx, false).Err
}
