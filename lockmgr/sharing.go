package lockmgr

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"janus.io/janus/internal/sharedlease"
)

// joined is a shared Lease with the holder among its readers, its time begun again.
func joined(lease *coordinationv1.Lease, s sharedlease.Sharing, h Holder, now time.Time) *coordinationv1.Lease {
	return s.With(h.entry(placeOf(lease), lease.ResourceVersion, now)).In(lease, now)
}

// claimShared judges a shared Lease that was just read, like claim.
func (m *Manager) claimShared(ctx context.Context, h Holder, key Key, lease *coordinationv1.Lease, s sharedlease.Sharing) (*coordinationv1.Lease, error) {
	now := m.clock.Now()
	stood := m.memory.watchEntries(h.Identity, lease, s, now)
	if key.Shared {
		return m.join(ctx, h, key, lease, s, stood)
	}
	alive, left := m.alive(ctx, h, lease, s, stood)
	if len(alive) == 0 {
		return takenOver(lease, h, key, h.says(now)), nil
	}
	return nil, &HeldError{
		Key: key, Lease: placeOf(lease).String(), Holder: alive[0].Holder, Others: len(alive) - 1, Shared: true,
		Until: left, wanted: lease,
	}
}

// join is the Lease with the holder among its readers, by rule R.
func (m *Manager) join(
	ctx context.Context, h Holder, key Key, lease *coordinationv1.Lease, s sharedlease.Sharing, stood map[entryKey]time.Duration,
) (*coordinationv1.Lease, error) {
	now := m.clock.Now()
	if _, again := s.Reader(h.Identity); again {
		return h.marked(joined(lease, s, h, h.says(now)), key), nil
	}
	if s.Next != nil {
		left := s.Next.Duration() - stood[keyOfEntry(*s.Next, true)]
		if s.Next.Holder != h.Identity && left > 0 && !h.ended(ctx, heldBy(*s.Next, lease)) {
			return nil, &HeldError{Key: key, Lease: placeOf(lease).String(), Holder: s.Next.Holder, Shared: true, Waits: true, Until: left}
		}
		s.Next = nil
	}
	if len(s.Readers) >= m.limits.readers {
		s.Readers = slices.DeleteFunc(slices.Clone(s.Readers), func(r sharedlease.Entry) bool { return r.Duration() <= stood[keyOfEntry(r, false)] })
	}
	if len(s.Readers) >= m.limits.readers {
		return nil, &HeldError{
			Key: key, Lease: placeOf(lease).String(), Holder: s.Readers[0].Holder, Others: len(s.Readers) - 1, Shared: true,
			Until: m.limits.recheck,
		}
	}
	return joined(lease, s, h, h.says(now)), nil
}

// alive are the readers beside the holder that are in the way, and how long the last of them
// still has. Whether one has ended is asked only until one has not: that costs a request.
func (m *Manager) alive(ctx context.Context, h Holder, lease *coordinationv1.Lease, s sharedlease.Sharing, stood map[entryKey]time.Duration) (alive []sharedlease.Entry, longest time.Duration) {
	for _, r := range s.Readers {
		left := r.Duration() - stood[keyOfEntry(r, false)]
		if r.Holder == h.Identity || left <= 0 || len(alive) == 0 && h.ended(ctx, heldBy(r, lease)) {
			continue
		}
		alive, longest = append(alive, r), max(longest, left)
	}
	return alive, longest
}

// heldBy is the Lease as if the entry's holder had it alone, for Holder.Ended.
func heldBy(e sharedlease.Entry, lease *coordinationv1.Lease) *coordinationv1.Lease {
	own := lease.DeepCopy()
	own.Spec.HolderIdentity, own.Spec.LeaseDurationSeconds = ptr.To(e.Holder), ptr.To(e.Seconds)
	return own
}

// reserve enters the holder of the acquisition as the next in the shared Lease that it was
// refused, and renews that. If this fails, the next Acquire does it.
func (a *acquisition) reserve(ctx context.Context, held *HeldError) {
	lease := held.wanted
	if lease == nil || !a.holder.Waits || a.holder.confirm(ctx, false) != nil {
		return
	}
	for range a.limits.attempts {
		s, shared := a.sharingOf(a.holder, lease)
		if !shared || lease.DeletionTimestamp != nil {
			break // It is free, or another has it alone.
		}
		if !a.mayReserve(ctx, lease, s) {
			held.Until = min(held.Until, a.holder.entryAge())
			return
		}
		now := a.clock.Now()
		next := a.holder.entry(placeOf(lease), lease.ResourceVersion, now)
		s.Next = &next
		written, err := a.client.Leases(lease.Namespace).Update(ctx, s.In(lease, now), metav1.UpdateOptions{})
		if err == nil {
			a.memory.watchEntries(a.holder.Identity, written, s, now)
			held.Until = min(held.Until, a.holder.entryAge())
			return
		}
		if !isOutdated(err) {
			a.holder.doubt(err)
			break
		}
		if lease, err = a.get(ctx, placeOf(lease)); err != nil {
			break
		}
	}
	held.Until = min(held.Until, a.limits.recheck)
}

// entryAge is after how long an entry as the next is renewed.
func (h Holder) entryAge() time.Duration { return time.Duration(h.seconds()) * time.Second / 3 }

// mayReserve says whether the holder is to write itself into the Lease as the next: nobody is,
// or its own entry has grown old, or that of another is over.
func (a *acquisition) mayReserve(ctx context.Context, lease *coordinationv1.Lease, s sharedlease.Sharing) bool {
	if s.Next == nil {
		return true
	}
	stood := a.memory.watchEntries(a.holder.Identity, lease, s, a.clock.Now())[keyOfEntry(*s.Next, true)]
	if s.Next.Holder == a.holder.Identity {
		return stood >= a.holder.entryAge()
	}
	return stood >= s.Next.Duration() || a.holder.ended(ctx, heldBy(*s.Next, lease))
}

// leave takes a holder out of a Lease, which it deletes if nobody else is in it, only if the
// Lease is exactly the one that was read.
func (m *Manager) leave(ctx context.Context, h Holder, lease *coordinationv1.Lease) error {
	s, shared := sharedlease.Of(lease)
	if shared {
		s = s.Without(h.Identity)
	}
	if !shared || s.IsEmpty() {
		return m.delete(ctx, lease)
	}
	next := s.In(lease, ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time)
	if _, err := m.client.Leases(lease.Namespace).Update(ctx, next, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update Lease %s: %w", placeOf(lease), err)
	}
	return nil
}

// errContended says that others write a shared Lease so often that this process does not come to
// write it.
var errContended = errors.New("others write the Lease all the time")

// leaveAs is leave for an entry as this process has last written it, whatever others have
// written into the Lease since. It is a conflict if the entry is another by now, and
// errContended if it is still there.
func (m *Manager) leaveAs(ctx context.Context, h Holder, lease *coordinationv1.Lease) error {
	was, shared := sharedlease.Of(lease)
	own, _ := was.Reader(h.Identity)
	err := m.leave(ctx, h, lease)
	for range m.limits.attempts - 1 {
		if !shared || !apierrors.IsConflict(err) {
			return err
		}
		current, failed := m.get(ctx, placeOf(lease))
		if failed != nil {
			return failed
		}
		is, _ := sharedlease.Of(current)
		if now, ok := is.Reader(h.Identity); !ok || now.Over != own.Over || current.UID != lease.UID {
			return err
		}
		err = m.leave(ctx, h, current)
	}
	if shared && apierrors.IsConflict(err) {
		return errContended
	}
	return err
}

// doubt notes that a write of a shared Lease may land later, unless its error says that it was
// refused.
func (h Holder) doubt(err error) {
	if err != nil && !isRefusedWrite(err) && h.Lost != nil {
		h.Lost()
	}
}

// isRefusedWrite says whether the answer to a conditional write proves that it has no effect.
// A conflict does not, because client-go repeats requests by itself; but then the Lease is
// looked at again.
func isRefusedWrite(err error) bool {
	status := apierrors.APIStatus(nil)
	return isOutdated(err) || errors.As(err, &status) && status.Status().Code == http.StatusForbidden || isRefusal(err)
}
