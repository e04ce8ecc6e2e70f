package lockmgr

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// An acquisition is one call of Acquire.
type acquisition struct {
	*Manager
	holder Holder
	slots  []slot

	mu sync.Mutex
	// failed is the index of the first slot with an error; later ones are not
	// begun any more.
	failed int
	// absent are the namespaces that were found not to exist.
	absent map[string]bool
}

// A slot is what became of one key. Only one goroutine at a time has it.
type slot struct {
	key Key
	// place is where the lock is held, if held is set.
	place types.NamespacedName
	held  bool
	// settled is set once the key's other place has been ruled out too.
	settled bool
	err     error
}

// Acquire takes the locks of the keys, in the order of Key.Less whatever order
// they are given in, and returns those that it found or made held, also with an
// error. Two keys of one identity are one lock. The error is that of the first key in
// order that failed:
//
//   - *HeldError: another client holds that lock. The locks that come before it
//     are held; those that come after it have been released. The caller
//     waits and calls Acquire again, which costs nothing for fresh locks.
//   - *NamespaceTerminatingError: the lock cannot be taken.
//   - any other: the API server's. Whether that lock was taken may not be
//     known; the next Acquire or Release finds out.
//
// After a crash a Lease with the holder's identity and labels is the holder's. Locks after
// the refused one that an earlier process took and this one has not seen are
// not looked for: they expire, or Release finds them.
func (m *Manager) Acquire(ctx context.Context, h Holder, keys []Key) ([]Lock, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	a := &acquisition{Manager: m, holder: m.inOneCall(h), absent: map[string]bool{}}
	for _, key := range inOrder(keys) {
		a.slots = append(a.slots, slot{key: key})
	}
	a.failed = len(a.slots)
	a.run(ctx, a.waitedFor())
	a.run(ctx, len(a.slots))
	return a.result(ctx)
}

// waitedFor is the number of slots up to the first one that the holder was
// refused before, or 0. Those are taken first, for the lock is likely held
// still: the later ones would be taken for nothing, and be in others' way.
func (a *acquisition) waitedFor() int {
	for i, s := range a.slots {
		if a.memory.isWaiting(a.holder.Identity, a.places(s.key)) {
			return i + 1
		}
	}
	return 0
}

// run takes and settles the locks of the first n slots, unless one has failed.
func (a *acquisition) run(ctx context.Context, n int) {
	for range a.limits.rounds {
		if a.hasFailedBefore(n - 1) {
			return
		}
		a.each(ctx, n, a.takeSlot)
		if again := a.settle(ctx); !again {
			return
		}
	}
	a.giveUp(n)
}

// takeSlot takes the lock of slot i if that still makes sense.
func (a *acquisition) takeSlot(ctx context.Context, i int) {
	s := &a.slots[i]
	if s.held || a.hasFailedBefore(i) {
		return
	}
	if a.remembers(ctx, s) {
		return
	}
	place, err := a.takeSomewhere(ctx, s.key)
	a.observe(OperationAcquire, acquireResult(err))
	if err != nil {
		a.fail(i, err)
		return
	}
	s.held, s.place = true, place
}

// remembers says whether the slot's lock is held already, and renews it if it
// has grown old. If that fails it is taken like any other.
func (a *acquisition) remembers(ctx context.Context, s *slot) bool {
	known := a.current(a.holder, s.key)
	if known.lease == nil {
		return false
	}
	if !known.fresh(a.clock.Now()) {
		err := a.renew(ctx, a.holder, lockAt(s.key, known.place), known.lease)
		if err != nil {
			return false
		}
		a.observe(OperationRenew, ResultOK)
	}
	s.held, s.place, s.settled = true, known.place, known.settled
	return true
}

// takeSomewhere takes the lock at the key's home, or, if the namespace does not
// exist, as a stand-in.
func (a *acquisition) takeSomewhere(ctx context.Context, key Key) (types.NamespacedName, error) {
	places := a.places(key)
	home := places[0]
	if len(places) == 1 {
		return home, a.take(ctx, a.holder, key, home)
	}
	if !a.isAbsent(key.Namespace) {
		if err := a.take(ctx, a.holder, key, home); !isNamespaceMissing(err) {
			return home, err
		}
		a.setAbsent(key.Namespace, true)
	}
	away := places[1]
	return away, a.take(ctx, a.holder, key, away)
}

// giveUp refuses those locks of the first n slots that are in namespaces
// that come and go too fast to follow.
func (a *acquisition) giveUp(n int) {
	for i := range a.slots[:n] {
		s := &a.slots[i]
		if !s.held && !a.hasFailedBefore(i) {
			lease := a.places(s.key)[0].String()
			a.fail(i, &HeldError{Key: s.key, Lease: lease, Until: a.limits.recheck})
		}
	}
}

// result releases what comes after the first refused lock and makes what
// Acquire returns.
func (a *acquisition) result(ctx context.Context) ([]Lock, error) {
	refused := a.firstRefused()
	var locks []Lock
	for _, s := range a.slots[:refused] {
		if s.held && s.settled {
			locks = append(locks, lockAt(s.key, s.place))
		}
	}
	if a.failed == len(a.slots) {
		return locks, nil
	}
	err := a.slots[a.failed].err
	if held := (*HeldError)(nil); errors.As(err, &held) {
		a.reserve(ctx, held)
	}
	if refused < len(a.slots) {
		if failure := a.giveBack(ctx, a.slots[refused+1:]); failure != nil {
			err = errors.Join(err, failure)
		}
	}
	return locks, err
}

// firstRefused is the index of the first slot whose lock another client holds,
// or the number of slots. No other goroutine may have a slot meanwhile.
func (a *acquisition) firstRefused() int {
	for i, s := range a.slots {
		if isHeld(s.err) {
			return i
		}
	}
	return len(a.slots)
}

// fail notes the error of slot i, which is not held then.
func (a *acquisition) fail(i int, err error) {
	if !isTyped(err) {
		err = fmt.Errorf("lock of %s: %w", a.slots[i].key, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.slots[i].held, a.slots[i].err = false, err
	a.failed = min(a.failed, i)
}

func (a *acquisition) hasFailedBefore(i int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed <= i
}

func (a *acquisition) isAbsent(namespace string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.absent[namespace]
}

func (a *acquisition) setAbsent(namespace string, absent bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.absent[namespace] = absent
}

// current is the Lease that embodies the holder's lock as far as is known. If
// there are two, that is the one that is settled. It is the zero heldLease if none
// is known for certain.
func (m *Manager) current(h Holder, key Key) heldLease {
	var best heldLease
	for _, t := range m.memory.at(h.Identity, m.places(key)) {
		if t.lease != nil && (best.lease == nil || (t.settled && !best.settled)) {
			best = t
		}
	}
	return best
}

func acquireResult(err error) string {
	switch {
	case err == nil:
		return ResultOK
	case isHeld(err):
		return ResultHeld
	default:
		return ResultError
	}
}
