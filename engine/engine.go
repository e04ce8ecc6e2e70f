package engine

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/memory"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// Engine carries Transactions out.
type Engine struct {
	Ports
	clock  clock.WithTicker
	policy plan.Policy

	memories *memory.All
}

// Ports are the engine's ways to the world.
type Ports struct {
	Journal  Journal
	Locks    Locks
	Planner  Planner
	Changes  Changes
	History  History
	Gates    Gates
	Recorder Recorder
}

// New makes an Engine.
func New(ports Ports, c clock.WithTicker, policy plan.Policy) *Engine {
	return &Engine{Ports: ports, clock: c, policy: policy.WithDefaults(), memories: memory.New(c)}
}

// Result says when a Transaction wants to be looked at again.
type Result struct {
	// After is a wait of known length; zero means that there is none.
	After time.Duration
	// Err is an error after which the Transaction is to be tried again with
	// back-off. It is never one that the Transaction has ended with: those are in
	// its status.
	Err error
	// Within bounds the back-off after Err: when it is over so is the time of the
	// Transaction, or of something that it waits for. Zero means no bound.
	Within time.Duration
}

// A lock, a finalizer or a kind that is not served yet is looked at again every second
// at first. Later that is done less often: what has taken a while may take another.
const (
	pollInterval    = time.Second
	maxPollInterval = 10 * time.Second
)

// Run takes a Transaction, as just read from the API server, as far as it goes:
// until it ends, has to wait, or ctx is done. A step in flight is finished even
// when ctx is done.
func (e *Engine) Run(ctx context.Context, t *api.Transaction) Result {
	s := e.saga(t)
	if s.memory.Overtaken() {
		s.Locks.Distrust(t)
	}
	if flight := e.memories.Recall(t); flight != nil {
		s.flight = flight
	}
	for ctx.Err() == nil {
		action := plan.Decide(s.txn, s.inFlight(), e.clock.Now(), e.policy)
		switch action.Verb {
		case plan.Nothing:
			result := s.lookBack(context.WithoutCancel(ctx), false)
			if result == (Result{}) {
				return s.expire(context.WithoutCancel(ctx))
			}
			return result
		case plan.Await:
			return Result{After: action.At.Sub(e.clock.Now())}
		case plan.Rest:
			after, err := s.rest(context.WithoutCancel(ctx))
			if err != nil {
				return s.pause(context.WithoutCancel(ctx), err)
			}
			return Result{After: after}
		}
		if err := s.perform(context.WithoutCancel(ctx), action); err != nil {
			return s.pause(context.WithoutCancel(ctx), err)
		}
		if s.gone {
			return Result{}
		}
	}
	return Result{Err: s.putDown(context.WithoutCancel(ctx))}
}

// saga is one run of one Transaction.
type saga struct {
	Ports
	clock   clock.WithTicker
	policy  plan.Policy
	memory  *memory.Memory   // of this Transaction
	txn     *api.Transaction // as the API server last stored it
	flight  *memory.Flight   // what is known beyond that
	ask     turns            // of what changes that are under way ask for
	heard   time.Time        // when the API server last had what this run goes on from, or a little before
	began   time.Time        // when this run began
	wrote   time.Time        // when this run last wrote the status, or began
	took    time.Duration    // how long it took to write it
	gone    bool             // the Transaction has been let go
	missing error            // what the last look at what is waited for found missing, if nothing was done since
}

func (e *Engine) saga(t *api.Transaction) *saga {
	now := e.clock.Now()
	return &saga{
		Ports: e.Ports, clock: e.clock, policy: e.policy, memory: e.memories.Of(t),
		txn: t, flight: memory.NewFlight(), ask: newTurns(), heard: now, began: now, wrote: now,
	}
}

// follow goes on with the Transaction as it is stored now.
func (s *saga) follow(t *api.Transaction) {
	s.txn = t
	s.memory.Follow(t)
}

func (s *saga) perform(ctx context.Context, a plan.Action) error {
	if a.Verb != plan.AwaitReady {
		s.missing = nil
	}
	switch a.Verb {
	case plan.AddFinalizer:
		return s.hold(ctx)
	case plan.Validate:
		return s.validate(ctx)
	case plan.Prepare:
		return s.prepare(ctx)
	case plan.Begin:
		return s.begin(ctx)
	case plan.Capture:
		return s.capture(ctx, a.Item)
	case plan.Open:
		return s.open(ctx)
	case plan.Look:
		return s.look(ctx)
	case plan.AwaitReady:
		return s.awaitReady(ctx)
	case plan.Do:
		return s.do(ctx, a.Items)
	case plan.Observe:
		return s.resolve(ctx, a.Item)
	case plan.Record:
		return s.writeDown(ctx)
	case plan.Finish:
		return s.finish(ctx)
	case plan.Fail:
		return s.fail(ctx, a.Cause)
	case plan.StartRollback:
		return s.turn(ctx, a.Cause)
	case plan.ObserveUndo:
		return s.settle(ctx, a.Item)
	case plan.OpenUndo:
		return s.writeDown(ctx)
	case plan.Undo:
		return s.undo(ctx, a.Item)
	case plan.Again:
		return s.again(ctx)
	case plan.SkipUndo:
		return s.spare(ctx, a.Item)
	case plan.FinishUndo:
		return s.finishUndo(ctx)
	case plan.Recover:
		return s.recover(ctx)
	case plan.Suspend:
		return s.suspend(ctx)
	case plan.Resume:
		return s.resume(ctx)
	case plan.AcceptPartial:
		return s.leave(ctx)
	case plan.ObserveGeneration:
		return s.seen(ctx)
	case plan.LetGo:
		return s.letGoAgain(ctx)
	default:
		return s.abandon(ctx)
	}
}

// checkpoint changes the status, with what is over, and writes it. Only when the API
// server has acknowledged it does the run go on, with what the server stored.
func (s *saga) checkpoint(ctx context.Context, change func(*api.TransactionStatus) error) error {
	next := s.txn.DeepCopy()
	if err := s.recordOver(&next.Status); err != nil {
		return err
	}
	if err := change(&next.Status); err != nil {
		return err
	}
	s.notAhead(&next.Status)
	plan.Summarize(next, s.clock.Now())
	if err := s.store(ctx, next); err != nil {
		return err
	}
	s.memory.WaitingEnded()
	return nil
}

// store writes the status as the next version.
func (s *saga) store(ctx context.Context, next *api.Transaction) error {
	next.Status.Version++
	next.Status.Failures += s.memory.Failures()
	sent := s.clock.Now()
	stored, err := s.Journal.Checkpoint(ctx, next)
	if errclass.Is(err, errclass.TooLarge) && plan.Lighten(&next.Status) {
		stored, err = s.Journal.Checkpoint(ctx, next)
	}
	if err != nil {
		return &journalError{err}
	}
	s.heard, s.wrote = sent, s.clock.Now()
	s.took = s.wrote.Sub(sent)
	s.acknowledged(stored)
	return nil
}

// confirm makes sure that no other process has gone on from what this run knows. If this
// run may be late it looks at the Transaction. To be sure anyway it writes it as it is,
// which is refused if it is not, and stops whoever else goes on from the same.
func (s *saga) confirm(ctx context.Context, anyway bool) error {
	if anyway {
		return s.takeOver(ctx)
	}
	asked := s.clock.Now()
	if asked.Sub(s.heard) < s.policy.Lateness {
		return nil
	}
	if err := s.Journal.Unwritten(ctx, s.txn); err != nil {
		return &journalError{err}
	}
	s.heard = asked
	return nil
}

// intent returns the Intent of an item from what this run goes on from.
func (s *saga) intent(i int, state api.ItemState) (Intent, error) {
	in, err := intentOf(s.txn, i, state)
	if err != nil {
		return in, err
	}
	in.txn, err = s.soFar()
	in.fresh = s.flight.Known[i].NoEffect()
	in.last = func() bool { return plan.IsAside(&s.txn.Status.Items[i]) || plan.Sparing(s.txn) || !s.othersOpen(i) }
	// Several changes may be under way.
	in.confirm = func(ctx context.Context, anyway bool) error {
		defer s.ask.take()()
		// An intent that another process may have recorded is taken over where it counts: they
		// may be at the same change, or about to write the item off.
		return s.confirm(ctx, anyway || !s.memory.Wrote())
	}
	in.mayCreate = func() error {
		defer s.ask.take()()
		return s.mayCreate(i)
	}
	return in, err
}

// acknowledged goes on with what the API server stored.
func (s *saga) acknowledged(stored *api.Transaction) {
	s.Recorder.Checkpointed(s.txn, stored)
	before := s.txn.Status.Items
	s.txn = stored
	s.memory.Stored(stored, s.flight, s.flight.Recorded(before, stored.Status.Items))
}

// pause records what the Transaction waits for, once, and says when to go on.
func (s *saga) pause(ctx context.Context, err error) Result {
	var journal *journalError
	if errors.As(err, &journal) {
		// Another process may have ended the Transaction, and locks that this run has
		// kept since have no owner.
		s.memory.SetUnrecorded(true)
		return Result{Err: journal.error}
	}
	if err := s.note(ctx, err); err != nil {
		return Result{Err: err, Within: s.timeLeft()}
	}
	within := s.timeLeft()
	after := errclass.RetryAfter(err)
	if errclass.Is(err, errclass.LockHeld) || errclass.Is(err, errclass.Terminating) || errclass.Is(err, plan.Settling) {
		after = s.lookAgain(s.awaited())
	}
	switch {
	case after <= 0:
		return Result{Err: err, Within: within}
	case within > 0:
		return Result{After: min(after, within)}
	default:
		return Result{After: after}
	}
}

func (s *saga) now() *metav1.Time {
	now := metav1.NewTime(s.clock.Now()).Rfc3339Copy()
	return &now
}
