package engine

import "context"

// cleanup removes what was made for a Transaction beside its changes.
type cleanup struct{ *saga }

// release releases the locks and discards the before-images. Before the Transaction
// is accepted it holds neither.
func (s cleanup) release(ctx context.Context, keepImages bool) error {
	search := SearchOnce
	switch {
	case s.memory.Unrecorded():
		search = SearchTwice
	case s.memory.NamesAll():
		search = SearchNot
	}
	return s.releaseAll(ctx, keepImages, search)
}

func (s cleanup) releaseAll(ctx context.Context, keepImages bool, search Search) error {
	s.memory.AllSettled()
	if len(s.txn.Status.Items) == 0 {
		return nil
	}
	if err := s.Locks.Release(ctx, s.txn, search); err != nil {
		return err
	}
	if err := s.Planner.Discard(ctx, s.txn, keepImages, search); err != nil {
		return err
	}
	s.memory.SetUnrecorded(false)
	return nil
}

// removeAll undoes the beginning of a recovery that was not to be when it began.
func (s cleanup) removeAll(ctx context.Context) error {
	if err := s.release(ctx, true); err != nil {
		return err
	}
	return s.removeFinalizer(ctx)
}

// removeLeftovers removes what was made for a Transaction that has ended and was not
// there, or not known, when it did: by this process, which was late; by a request of
// its own that was under way; or by a process that has died since.
func (s cleanup) removeLeftovers(ctx context.Context, gone bool) Result {
	left, ok := s.memory.Leftovers()
	if !ok {
		return Result{}
	}
	wait := s.doubtTime()
	if s.txn.DeletionTimestamp != nil && !gone {
		wait = 0 // Leftovers keep it from going.
	}
	// Nobody else removes that of one that is gone: its finalizer was taken off before its end.
	if left.Unrecorded || gone || left.Doubt && wait <= 0 {
		named := s.txn.Status.RollbackRef != nil
		if !named && left.Images != nil {
			t := s.txn.DeepCopy()
			t.Status.RollbackRef = left.Images
			s.follow(t)
		}
		keep := named && s.txn.DeletionTimestamp == nil && !gone
		if keep && s.txn.Status.RevisionDigest != "" {
			var err error
			if keep, err = s.History.Remembered(ctx, s.txn); err != nil {
				return Result{Err: err}
			}
		}
		// Nobody looks again, so that one answer is not enough.
		if err := s.releaseAll(ctx, keep, SearchTwice); err != nil {
			return Result{Err: err}
		}
	}
	if wait > 0 {
		return Result{After: wait}
	}
	s.forget()
	return Result{}
}

// forget drops what is known of a Transaction of which nothing is left.
func (s cleanup) forget() {
	s.Planner.Forget(s.txn)
	s.memory.Forget()
}
