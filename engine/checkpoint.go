package engine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// A checkpoint is a write of the status that is refused if another client has written in
// between. Only when the API server has acknowledged it does the run go on, with what the
// server stored.

// checkpoint changes the status, with what is over, and writes it.
func (s *saga) checkpoint(ctx context.Context, change func(*api.TransactionStatus) error) error {
	next := s.txn.DeepCopy()
	if err := s.recordOver(&next.Status); err != nil {
		return err
	}
	if err := change(&next.Status); err != nil {
		return err
	}
	notAhead(&next.Status, s.clock.Now())
	plan.Summarize(next, s.clock.Now())
	if err := s.store(ctx, next); err != nil {
		return err
	}
	s.memory.WaitingEnded()
	return nil
}

// recordEnded records what is over, if anything is, and opens nothing.
func (s *saga) recordEnded(ctx context.Context) error {
	if !s.flight.Known.Any(plan.Over) {
		return nil
	}
	return s.checkpoint(ctx, func(*api.TransactionStatus) error { return nil })
}

// writeShare is how many times as long as it takes to write the status is worked before
// it is written again, so that of a large Transaction not most of the time goes into it.
const writeShare = 10

// due reports whether it is time to record what is over.
func (s *saga) due() bool {
	return s.clock.Since(s.wrote) >= max(s.policy.Lateness/2, writeShare*s.took)
}

// store writes the status as the next version.
func (s *saga) store(ctx context.Context, next *api.Transaction) error {
	next.Status.Version++
	plan.CountFailures(&s.txn.Status, &next.Status, s.memory.Failures())
	sent := s.clock.Now()
	stored, err := s.write(ctx, next)
	if err != nil {
		return &journalError{err}
	}
	s.heard, s.wrote = sent, s.clock.Now()
	s.took = s.wrote.Sub(sent)
	s.acknowledged(stored)
	return nil
}

// write writes the status. If it is too large, it is written without what is there for readers alone.
func (s *saga) write(ctx context.Context, next *api.Transaction) (*api.Transaction, error) {
	stored, err := s.Journal.Checkpoint(ctx, next)
	if errclass.Is(err, errclass.TooLarge) && plan.Lighten(&next.Status) {
		stored, err = s.Journal.Checkpoint(ctx, next)
	}
	if errclass.ClassOf(err) == errclass.Unknown {
		// What it says may be on record later. So nothing is sent before it has been replaced: it may
		// say that a change was refused which is accepted when it is sent again.
		s.memory.Unanswered()
	}
	return stored, err
}

// acknowledged goes on with what the API server stored.
func (s *saga) acknowledged(stored *api.Transaction) {
	s.Recorder.Checkpointed(s.txn, stored)
	before := s.txn.Status.Items
	s.txn = stored
	s.memory.Stored(stored, s.flight, s.flight.Recorded(before, stored.Status.Items))
}

// confirm makes sure that no other process has gone on from what this run knows. If this
// run may be late it looks at the Transaction. To be sure anyway it writes it as it is,
// which is refused if it is not, and stops anyone else who goes on from the same.
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

// takeOver makes an intent that another process may have recorded this run's own.
// Anyone who recorded it, should they still be alive, can write no checkpoint after
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

// notAhead lets what would begin ahead of the clock begin now. It would have what the
// clock was ahead on top of its time otherwise.
func notAhead(status *api.TransactionStatus, now time.Time) {
	for _, t := range plan.BegunAhead(status, now) {
		begins := metav1.NewTime(now).Rfc3339Copy()
		*t = &begins
	}
}
