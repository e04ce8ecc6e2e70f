package engine

import (
	"context"
	"errors"
	"sync"

	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// locked is the proof that a step has taken or kept the locks before it makes a change, rolls
// one back or saves a before-image. Only this file gives it out, and each of these asks for
// it: a step that has not kept the locks does not compile. It is for one step, and is not
// stored.
//
// It does not end when a lock does. What is sent late is refused by a precondition, and a
// request that is cut off may take effect all the same, without anyone knowing.
type locked struct{ by *saga }

// errNotLocked is a mistake in a step: the proof is not of this run.
var errNotLocked = errors.New("the locks were not kept before a write")

func (l locked) check(s *saga) error {
	if l.by != s {
		return errNotLocked
	}
	return nil
}

// takeLocks takes the locks of all targets, and returns the Lease of each item.
func (s *saga) takeLocks(ctx context.Context) ([]string, locked, error) {
	leases, err := s.Locks.Acquire(ctx, s.txn, s.memory.Doubt)
	if err != nil {
		return nil, locked{}, err
	}
	return leases, locked{s}, nil
}

// keepLocks keeps the locks. What is late is not to take locks again that another process
// has released: nobody would release them once more.
func (s *saga) keepLocks(ctx context.Context) (locked, error) {
	if err := s.confirm(ctx, false); err != nil {
		return locked{}, err
	}
	if err := s.Locks.Keep(ctx, s.txn, s.memory.Doubt); err != nil {
		return locked{}, err
	}
	return locked{s}, nil
}

// keepLocksIfPossible keeps the locks for a compensation, which is made without one that
// another client holds by now: every write carries a precondition, and waiting for a lock
// while holding others could be part of a cycle. Any other error is worth another try.
func (s *saga) keepLocksIfPossible(ctx context.Context) (locked, error) {
	_, err := s.keepLocks(ctx)
	if err != nil && (isJournal(err) || !errclass.Is(err, errclass.LockLost) && !plan.Definite(err)) {
		return locked{}, err
	}
	return locked{s}, nil
}

// keepUntilSettled waits until a request for item i cannot land any more, and keeps the locks
// meanwhile. That another client holds one by now shows when the rollback resumes.
func (s *saga) keepUntilSettled(ctx context.Context, i int) error {
	if _, err := s.keepLocks(ctx); isJournal(err) {
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
	held := s.txn // The work may go on from a later version, which has the same locks.
	done.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
				if s.clock.Since(last) > period+s.policy.Lateness {
					return // It hung: anyone who has replaced it may have released them.
				}
				_ = s.Locks.Keep(ctx, held, s.memory.Doubt)
				last = s.clock.Now()
			}
		}
	})
	defer done.Wait()
	defer stop()
	return work()
}
