package engine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/memory"
	"janus.io/janus/engine/plan"
)

// saga is one run of one Transaction: what the steps of every phase work with. Each phase is
// a type of its own around it, so that one phase calls another only by its name.
type saga struct {
	Ports
	clock  clock.WithTicker
	policy plan.Policy
	beside func(limit, n int, work func(i int))
	memory *memory.Memory   // of this Transaction
	txn    *api.Transaction // as the API server last stored it
	flight *memory.Flight   // what is known beyond that
	ask    turns            // of what changes that are under way ask for
	heard  time.Time        // when the API server last had what this run goes on from, or a little before
	began  time.Time        // when this run began
	wrote  time.Time        // when this run last wrote the status, or began
	took   time.Duration    // how long it took to write it
	gone   bool             // the Transaction has been let go
	enough func() bool      // whether a step that can be resumed is to stop between two requests
}

func (e *Engine) saga(t *api.Transaction) *saga {
	now := e.clock.Now()
	return &saga{
		Ports: e.Ports, clock: e.clock, policy: e.policy, beside: e.beside, memory: e.memories.Of(t),
		txn: t, flight: memory.NewFlight(), ask: newTurns(), heard: now, began: now, wrote: now,
		enough: func() bool { return false },
	}
}

// both does two things, neither of which needs the other, side by side. What stands in the way of the
// record counts first.
func (s *saga) both(one, other func() error) error {
	var errs [2]error
	s.beside(2, 2, func(n int) { errs[n] = [...]func() error{one, other}[n]() })
	if errs[0] == nil || isJournal(errs[1]) {
		return errs[1]
	}
	return errs[0]
}

// stepTime is for how long a step goes on that can be resumed. Between two of them it is checked whether
// the Transaction has had its time, or was cancelled.
const stepTime = 10 * time.Second

// beginStep has a step that can be resumed stop once it has had its time, or ctx is done: its worker is
// wanted elsewhere.
func (s *saga) beginStep(ctx context.Context) {
	began := s.clock.Now()
	s.enough = func() bool { return ctx.Err() != nil || s.clock.Since(began) >= stepTime }
}

// follow goes on with the Transaction as it is stored now.
func (s *saga) follow(stored *api.Transaction) {
	s.txn = stored
	s.memory.Follow(stored)
}

func (s *saga) now() *metav1.Time {
	now := metav1.NewTime(s.clock.Now()).Rfc3339Copy()
	return &now
}

// share is how much an item of this Transaction may report.
func (s *saga) share() int { return plan.ReportShare(len(s.txn.Status.Items)) }

// accept records that the spec is accepted as it is.
func (s *saga) accept(status *api.TransactionStatus) {
	status.ObservedGeneration = s.txn.Generation
	status.SpecDigest = plan.SpecDigest(&s.txn.Spec)
	if status.StartTime == nil {
		status.StartTime = s.now()
	}
}

// addFinalizer adds the finalizer before anything is taken that it would have to give
// back.
func (s *saga) addFinalizer(ctx context.Context) error {
	stored, err := s.Journal.AddFinalizer(ctx, s.txn)
	if err != nil {
		return &journalError{err}
	}
	s.follow(stored)
	return nil
}

func (s *saga) removeFinalizer(ctx context.Context) error {
	if !plan.HasFinalizer(s.txn) {
		return nil
	}
	stored, err := s.Journal.RemoveFinalizer(ctx, s.txn)
	if err != nil {
		return &journalError{err}
	}
	s.follow(stored)
	return nil
}
