package engine

import (
	"context"
	"sync"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// hold adds the finalizer before anything is taken that it would have to give
// back.
func (s *saga) hold(ctx context.Context) error {
	stored, err := s.Journal.AddFinalizer(ctx, s.txn)
	if err != nil {
		return &journalError{err}
	}
	s.txn = stored
	return nil
}

func (s *saga) accept(status *api.TransactionStatus) {
	status.ObservedGeneration = s.txn.Generation
	status.SpecDigest = plan.SpecDigest(&s.txn.Spec)
	if status.StartTime == nil {
		status.StartTime = s.now()
	}
}

// prepare locks every target and saves every before-image that can be taken now.
// Nothing here needs undoing, so it is one checkpoint for all items.
func (s *saga) prepare(ctx context.Context) error {
	if !s.mine() {
		// Whoever has had it may still be at work. They would go on to make changes under
		// locks that this run releases while it waits.
		if err := s.takeOver(ctx); err != nil {
			return err
		}
	}
	s.setLoose(true)
	leases, err := s.Locks.Acquire(ctx, s.txn, s.doubt)
	if err != nil {
		return s.failOr(ctx, err)
	}
	if err := s.confirm(ctx, false); err != nil {
		return err
	}
	items := plan.Preparable(s.txn)
	var saved Prepared
	err = s.whileKeepingLocks(ctx, func() (err error) {
		saved, err = s.Planner.Prepare(ctx, s.txn, items, s.doubt)
		return err
	})
	if err != nil {
		return s.failOr(ctx, err)
	}
	s.know(func(m *memory) { m.images = saved.Ref })
	err = s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		for i := range status.Items {
			status.Items[i].LockLease = leases[i]
		}
		if err := recordImages(status, items, saved); err != nil {
			return err
		}
		return plan.MovePhase(status, api.PhasePrepared)
	})
	if err == nil {
		s.setLoose(false)
	}
	return err
}

// failOr ends the Transaction on an error that will not heal and waits on any
// other. No intent is on record, so there is nothing to roll back.
func (s *saga) failOr(ctx context.Context, err error) error {
	if !plan.Definite(err) {
		return err
	}
	cause := plan.CauseOf(err)
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		plan.SetInvalid(status, s.txn.Generation, s.clock.Now(), cause)
		return nil
	})
}

func recordImages(status *api.TransactionStatus, items []int, saved Prepared) error {
	for n, i := range items {
		known := saved.Items[n]
		if status.Items[i].DeferredBy == "" {
			status.Items[i].DeferredBy = known.DeferredBy
		}
		if known.DeferredBy != "" {
			continue
		}
		status.Items[i].Before = &known.Image
		status.Items[i].Taken, status.Items[i].Warnings = known.Taken, known.Warnings
		if err := plan.MoveItem(&status.Items[i], api.ItemPrepared); err != nil {
			return err
		}
	}
	status.RollbackRef = saved.Ref
	if saved.Account != "" {
		status.ServiceAccountUID = uid(saved.Account)
	}
	return nil
}

// whileKeepingLocks renews the locks as long as work takes. That a lock was lost
// shows when it is kept again before the first change.
func (s *saga) whileKeepingLocks(ctx context.Context, work func() error) error {
	ctx, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	period := plan.LockTimeout(s.txn) / 4
	ticker := s.clock.NewTicker(period)
	last := s.clock.Now()
	done.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
				if s.clock.Since(last) > period+s.policy.Lateness {
					return // It hung: whoever has replaced it may have released them.
				}
				_ = s.Locks.Keep(ctx, s.txn, s.doubt)
				last = s.clock.Now()
			}
		}
	})
	defer done.Wait()
	defer stop()
	return work()
}
