package engine

import (
	"context"
	"sync"

	"janus.io/janus/engine/plan"
)

// keepLocks keeps the locks. What is late is not to take locks again that another process
// has given back: nobody would give them back once more.
func (s *saga) keepLocks(ctx context.Context) error {
	if err := s.confirm(ctx, false); err != nil {
		return err
	}
	return s.Locks.Keep(ctx, s.txn, s.memory.Doubt)
}

// keepUntilSettled waits until a request for item i cannot land any more, and keeps the locks
// meanwhile. That another client holds one by now shows when the rollback resumes.
func (s *saga) keepUntilSettled(ctx context.Context, i int) error {
	if err := s.keepLocks(ctx); isJournal(err) {
		return err
	}
	return s.unsettled(i)
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
					return // It hung: whoever has replaced it may have given them back.
				}
				_ = s.Locks.Keep(ctx, s.txn, s.memory.Doubt)
				last = s.clock.Now()
			}
		}
	})
	defer done.Wait()
	defer stop()
	return work()
}
