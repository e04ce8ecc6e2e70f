package lockmgr

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"janus.io/janus/internal/sharedlease"
)

// Release releases the locks of the keys that the holder has, and ends the
// waiting for the others. It deletes only Leases that are the holder's at the
// moment of the delete. A lock that is remembered costs one delete. For any
// other it looks in both places, so that a lock is found too that was taken by
// a process which died before recording it. It is no error if there is none.
//
// The error joins those of all Leases that could not be released; calling
// Release again tries them again. It is *UnseenError of a Lease at which this
// process may not look.
func (m *Manager) Release(ctx context.Context, h Holder, keys []Key) error {
	if err := h.check(); err != nil {
		return err
	}
	keys = inOrder(keys)
	errs := make([]error, len(keys))
	m.each(ctx, len(keys), func(ctx context.Context, i int) { errs[i] = m.release(ctx, h, keys[i]) })
	return errors.Join(errs...)
}

// release releases the lock of one key, wherever it is.
func (m *Manager) release(ctx context.Context, h Holder, key Key) error {
	places := m.places(key)
	m.memory.stopWatching(h.Identity, places...)
	remembered := m.memory.at(h.Identity, places)
	if len(remembered) == 0 {
		for _, place := range places {
			remembered = append(remembered, heldLease{place: place})
		}
	}
	var errs []error
	for _, t := range remembered {
		errs = append(errs, m.releaseAt(ctx, h, lockAt(key, t.place), t.lease))
	}
	return errors.Join(errs...)
}

// releaseAt deletes the holder's Lease at one place. The Lease is as last
// known, or nil if it is to be looked up.
func (m *Manager) releaseAt(ctx context.Context, h Holder, lock Lock, lease *coordinationv1.Lease) error {
	ours, err := m.deleteOurs(ctx, h, lock, lease)
	switch {
	case err != nil:
		m.memory.blur(h.Identity, lock.place())
		m.observe(OperationRelease, ResultError)
		return fmt.Errorf("release lock of %s: %w", lock.Key, err)
	case ours, lease == nil:
		m.observe(OperationRelease, ResultOK)
	default:
		m.observe(OperationRelease, ResultLost)
	}
	m.memory.drop(h.Identity, lock.place())
	return nil
}

// deleteOurs deletes the Lease unless another holder has it, which it says. A
// Lease that is gone, or about to go, counts as deleted.
func (m *Manager) deleteOurs(ctx context.Context, h Holder, lock Lock, lease *coordinationv1.Lease) (bool, error) {
	var outdated error
	for range m.limits.attempts {
		if lease == nil {
			var err error
			if lease, err = m.get(ctx, lock.place()); apierrors.IsNotFound(err) {
				// One answer may be wrong, and nobody would look for the Lease again.
				lease, err = m.get(ctx, lock.place())
			}
			switch {
			case apierrors.IsNotFound(err):
				return true, nil
			case apierrors.IsForbidden(err):
				return false, &UnseenError{Lock: lock, Err: err}
			case err != nil:
				return false, err
			}
			if !isOurs(lease, h.Identity) && sharedlease.NextOf(lease) != h.Identity {
				return false, nil
			}
			if lease.DeletionTimestamp != nil {
				return true, nil
			}
			if err := h.confirm(ctx, true); err != nil {
				return false, fmt.Errorf("delete Lease %s: %w", lock.place(), err)
			}
		}
		err := m.leave(ctx, h, lease)
		if err == nil || apierrors.IsNotFound(err) {
			return true, nil
		}
		if !apierrors.IsConflict(err) {
			return false, err
		}
		outdated, lease = err, nil
	}
	return false, outdated
}

// delete deletes the Lease only if it is exactly the one that was read. The
// uid alone would not do: who takes a Lease over in place keeps its uid.
func (m *Manager) delete(ctx context.Context, lease *coordinationv1.Lease) error {
	err := m.client.Leases(lease.Namespace).Delete(ctx, lease.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{
			UID:             ptr.To(lease.UID),
			ResourceVersion: ptr.To(lease.ResourceVersion),
		},
	})
	if err != nil {
		return fmt.Errorf("delete Lease %s: %w", placeOf(lease), err)
	}
	return nil
}

// giveBack releases what this process holds of the slots.
func (a *acquisition) giveBack(ctx context.Context, slots []slot) error {
	errs := make([]error, len(slots))
	a.each(ctx, len(slots), func(ctx context.Context, i int) {
		key := slots[i].key
		for _, known := range a.memory.at(a.holder.Identity, a.places(key)) {
			err := a.giveBackAt(ctx, lockAt(key, known.place), known.lease)
			if apierrors.IsConflict(err) {
				err = nil // There is nothing left that is this process' own.
			}
			errs[i] = errors.Join(errs[i], err)
		}
	})
	return errors.Join(errs...)
}

// giveBackAt leaves the Lease only as this process has last written it. Unlike Release
// it does not look again: this process may have hung, and one that has taken the
// holder over may rely on the lock since. What is not released expires, or Release
// finds it.
func (a *acquisition) giveBackAt(ctx context.Context, lock Lock, lease *coordinationv1.Lease) error {
	if lease == nil {
		return nil
	}
	err := a.leaveAs(ctx, a.holder, lease)
	switch {
	case err == nil, apierrors.IsNotFound(err):
		a.observe(OperationRelease, ResultOK)
		err = nil
	case apierrors.IsConflict(err):
		a.observe(OperationRelease, ResultLost)
	case errors.Is(err, errContended):
		// It stays remembered, so that the next Acquire gives it back before it waits.
		a.observe(OperationRelease, ResultError)
		return fmt.Errorf("release lock of %s: %w", lock.Key, err)
	default:
		a.memory.blur(a.holder.Identity, lock.place())
		a.observe(OperationRelease, ResultError)
		return fmt.Errorf("release lock of %s: %w", lock.Key, err)
	}
	a.memory.drop(a.holder.Identity, lock.place())
	return err
}
