package engine

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
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
	status.SpecDigest = specDigest(&s.txn.Spec)
	if status.StartTime == nil {
		status.StartTime = s.now()
	}
}

// prepare locks every target and saves every before-image that can be taken now.
// Nothing here needs undoing, so it is one checkpoint for all items.
func (s *saga) prepare(ctx context.Context) error {
	if !s.mine() {
		// Whoever has had it may still be at work. They would go on to make changes under
		// locks that this run gives back while it waits.
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
	items := early(s.txn)
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
		return movePhase(status, api.PhasePrepared)
	})
	if err == nil {
		s.setLoose(false)
	}
	return err
}

// failOr ends the Transaction on an error that will not heal and waits on any
// other. No intent is on record, so there is nothing to roll back. What the pre-flight
// said of the changes does not hold any more.
func (s *saga) failOr(ctx context.Context, err error) error {
	if !definite(err) {
		return err
	}
	cause := causeOf(err)
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		setFailure(status, s.txn.Generation, s.clock.Now(), cause)
		setCondition(status, s.txn.Generation, s.clock.Now(), condition{api.ConditionValidated, no, cause.Reason, errclass.Printable(cause.Message)})
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
		if err := moveItem(&status.Items[i], api.ItemPrepared); err != nil {
			return err
		}
	}
	status.RollbackRef = saved.Ref
	if saved.Account != "" {
		status.ServiceAccountUID = uid(saved.Account)
	}
	return nil
}

// early lists the items whose before-image can be taken before anything is
// changed: all but those whose target an earlier item changes too, those that are refused
// as long as an earlier item is not in effect, and those of which it is not known yet
// whether they are wanted. The before-image of the first is what the earlier item leaves,
// and is taken then.
func early(t *api.Transaction) []int {
	seen := map[api.Target]bool{}
	var out []int
	for i := range t.Status.Items {
		item := &t.Status.Items[i]
		if item.State == api.ItemSkipped {
			continue
		}
		key := identity(item.Target)
		if !seen[key] && item.DeferredBy == "" && (i >= len(t.Spec.Changes) || t.Spec.Changes[i].When == "") {
			out = append(out, i)
		}
		seen[key] = true
	}
	return out
}

// identity is a target without the version of its kind: every version of a kind
// shows the same object.
func identity(t api.Target) api.Target {
	gv, err := schema.ParseGroupVersion(t.APIVersion)
	if err == nil {
		t.APIVersion = gv.Group
	}
	return t
}

// SameTarget reports whether two targets are one object, named by whatever versions.
func SameTarget(a, b api.Target) bool { return identity(a) == identity(b) }

// whileKeepingLocks renews the locks as long as work takes. That a lock was lost
// shows when it is kept again before the first change.
func (s *saga) whileKeepingLocks(ctx context.Context, work func() error) error {
	ctx, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	period := LockTimeout(s.txn) / 4
	ticker := s.clock.NewTicker(period)
	last := s.clock.Now()
	done.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
				if s.clock.Since(last) > period+s.policy.lateness() {
					return // It hung: whoever has replaced it may have given them back.
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

// definite reports an error after which nothing took effect and trying again
// will not help.
func definite(err error) bool {
	if err == nil {
		return false
	}
	class := errclass.ClassOf(err)
	return class == errclass.Terminal || class == errclass.Conflict
}

func causeOf(err error) Cause {
	return Cause{Reason: errclass.ReasonOf(err), Message: errclass.Message(err)}
}
