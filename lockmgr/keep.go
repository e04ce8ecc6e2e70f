package lockmgr

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Keep renews the locks, of which each must have been returned by Acquire, in
// this process or an earlier one. A lock that is known to have more than two
// thirds of its time left costs no request. A lock that has expired but was
// taken by nobody is renewed, and one whose Lease is gone is taken again.
//
// The error is the *LostError of the first lock, in the order of Key.Less,
// that another holder has now, or else the first other error in that order.
// All locks are tried whatever becomes of the others. Where one request renews many, those go
// with it that would be next.
func (m *Manager) Keep(ctx context.Context, h Holder, locks []Lock) error {
	if err := h.check(); err != nil {
		return err
	}
	byKey := make(map[Key]Lock, len(locks))
	keys := make([]Key, 0, len(locks))
	for _, lock := range locks {
		byKey[lock.Key] = lock
		keys = append(keys, lock.Key)
	}
	keys = inOrder(keys)
	h = m.inOneCall(h)
	early := m.renewsEarly(h, keys)
	errs := make([]error, len(keys))
	m.each(ctx, len(keys), func(ctx context.Context, i int) { errs[i] = m.keep(ctx, h, byKey[keys[i]], early) })

	var other error
	for _, err := range errs {
		if isLost(err) {
			return err
		}
		if other == nil {
			other = err
		}
	}
	return other
}

// renewsEarly says whether locks are to be renewed in half of the usual time, since another has to be
// renewed in the same request anyway. They would drift apart otherwise, until each has a request
// of its own, and says another time than all others in its table.
func (m *Manager) renewsEarly(h Holder, keys []Key) bool {
	if _, ok := m.client.(batcher); !ok {
		return false
	}
	now := m.clock.Now()
	return slices.ContainsFunc(keys, func(key Key) bool {
		known := m.current(h, key)
		return known.lease != nil && !known.fresh(now)
	})
}

// keep renews one lock, at the place where this process knows it to be, or
// else where it was recorded: a lock moves when its namespace comes or goes.
func (m *Manager) keep(ctx context.Context, h Holder, lock Lock, early bool) error {
	known := m.current(h, lock.Key)
	if known.lease != nil {
		lock = lockAt(lock.Key, known.place)
		if !known.settled {
			// The last attempt to take it again did not get to its end.
			return m.retake(ctx, h, lock)
		}
		if now := m.clock.Now(); known.fresh(now) && (!early || known.freshFor(now, known.lasts/6)) {
			return nil
		}
	}
	err := m.renew(ctx, h, lock, known.lease)
	if errors.Is(err, errGone) {
		return m.retake(ctx, h, lock)
	}
	if err == nil {
		m.memory.settle(h.Identity, lock.place())
	}
	m.observe(OperationRenew, keepResult(err))
	if err != nil && !isTyped(err) {
		err = fmt.Errorf("lock of %s: %w", lock.Key, err)
	}
	return err
}

// retake takes a lock again whose Lease was deleted or emptied. Anyone who took
// it in between has it rightly.
func (m *Manager) retake(ctx context.Context, h Holder, lock Lock) error {
	h.Waits = false // A holder that has lost a lock does not wait for it.
	_, err := m.Acquire(ctx, h, []Key{lock.Key})
	if held := (*HeldError)(nil); errors.As(err, &held) {
		m.observe(OperationRenew, ResultLost)
		return &LostError{Lock: lock, Holder: held.Holder, Forged: held.Forged}
	}
	return err
}

func keepResult(err error) string {
	switch {
	case err == nil:
		return ResultOK
	case isLost(err):
		return ResultLost
	default:
		return ResultError
	}
}
