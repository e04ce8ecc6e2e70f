package lockmgr

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"janus.io/janus/internal/sharedlease"
)

// errGone says that a Lease that was ours has no holder now.
var errGone = errors.New("the Lease is gone")

// take makes the Lease at the place the holder's, or returns *HeldError. It
// creates first, without looking, unless there is reason to think that the
// Lease exists.
func (m *Manager) take(ctx context.Context, h Holder, key Key, place types.NamespacedName) error {
	holder := ""
	look := m.memory.watched(place) || len(m.memory.at(h.Identity, []types.NamespacedName{place})) > 0
	for range m.limits.attempts {
		if !look {
			err := m.create(ctx, h, key, place)
			if !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
		lease, err := m.get(ctx, place)
		if apierrors.IsNotFound(err) {
			m.memory.stopWatching(h.Identity, place)
			look = false
			continue
		}
		if err != nil {
			return err
		}
		look, holder = true, firstHolder(lease)
		next, err := m.claim(ctx, h, key, lease)
		if err != nil {
			m.memory.drop(h.Identity, place)
			return err
		}
		if err := m.update(ctx, h, next, isOurs(lease, h.Identity)); !isOutdated(err) {
			return err
		}
	}
	return &HeldError{Key: key, Lease: place.String(), Holder: holder, Until: m.limits.recheck}
}

// claim judges a record that was just read: it returns the Lease to write in
// order to hold it, or *HeldError.
func (m *Manager) claim(ctx context.Context, h Holder, key Key, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if s, shared := m.sharingOf(h, lease); shared && lease.DeletionTimestamp == nil {
		return m.claimShared(ctx, h, key, lease, s)
	}
	now := m.clock.Now()
	holder := firstHolder(lease)
	if m.isOwn(h, lease) && lease.DeletionTimestamp == nil {
		return renewed(lease, h, key, h.says(now)), nil
	}
	forged := m.isForged(h, lease)
	if forged {
		holder = h.Identity
	}
	left := duration(lease, h.seconds()) - m.memory.watch(h.Identity, lease, now)
	// A Lease that is being deleted can be written but not kept: anyone who wrote
	// it would find it gone.
	if lease.DeletionTimestamp != nil || (holder != "" && left > 0 && (forged || !h.ended(ctx, lease))) {
		if left <= 0 {
			left = m.limits.recheck
		}
		return nil, &HeldError{
			Key: key, Lease: placeOf(lease).String(), Holder: holder, Forged: forged, Until: left,
			Since: ptr.Deref(lease.Spec.AcquireTime, metav1.MicroTime{}).Time, Lasts: duration(lease, h.seconds()),
		}
	}
	return takenOver(lease, h, key, h.says(now)), nil
}

// renew begins the time of our Lease again. The Lease is as last known, or nil
// if it is to be looked up. The result is *LostError if another holder has it,
// and errGone if nobody has.
func (m *Manager) renew(ctx context.Context, h Holder, lock Lock, lease *coordinationv1.Lease) error {
	var outdated error
	for range m.limits.attempts {
		found := lease == nil
		if found {
			var err error
			if lease, err = m.get(ctx, lock.place()); apierrors.IsNotFound(err) {
				m.memory.drop(h.Identity, lock.place())
				return errGone
			} else if err != nil {
				return err
			}
		}
		if !m.isOwn(h, lease) {
			lost := &LostError{Lock: lock, Holder: firstHolder(lease)}
			if m.isForged(h, lease) {
				lost.Holder, lost.Forged = h.Identity, true
			}
			m.memory.drop(h.Identity, lock.place())
			if !excludes(lease, lock.Key) {
				return errGone
			}
			return lost
		}
		outdated = m.update(ctx, h, renewed(lease, h, lock.Key, h.says(m.clock.Now())), found)
		if !isOutdated(outdated) {
			return outdated
		}
		lease = nil
	}
	return outdated
}

// create creates the Lease and remembers it. If the answer is lost the Lease
// may exist, and the memory says so until it is looked at.
func (m *Manager) create(ctx context.Context, h Holder, key Key, place types.NamespacedName) error {
	if err := h.confirm(ctx, false); err != nil {
		return fmt.Errorf("create Lease %s: %w", place, err)
	}
	sent := m.clock.Now()
	m.memory.doubt(h.Identity, place)
	lease, err := m.client.Leases(place.Namespace).Create(ctx, newLease(h, key, place, h.says(sent)), metav1.CreateOptions{})
	if err == nil {
		m.hold(h, lease, sent)
		return nil
	}
	if isRefusal(err) {
		m.memory.drop(h.Identity, place)
	} else if h.Lost != nil {
		h.Lost()
	}
	if isNamespaceTerminating(err) {
		return &NamespaceTerminatingError{Key: key, Namespace: place.Namespace, Err: err}
	}
	return fmt.Errorf("create Lease %s: %w", place, err)
}

// update writes a Lease conditioned on its uid and resourceVersion, and
// remembers it. If the answer is lost then the next write is refused as
// outdated, and looking tells. found says that the Lease was the holder's when this
// process found it.
func (m *Manager) update(ctx context.Context, h Holder, next *coordinationv1.Lease, found bool) error {
	place := placeOf(next)
	if err := h.confirm(ctx, found); err != nil {
		return fmt.Errorf("update Lease %s: %w", place, err)
	}
	sent := m.clock.Now()
	m.memory.doubt(h.Identity, place)
	lease, err := m.client.Leases(place.Namespace).Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		if _, shared := sharedlease.Of(next); shared {
			h.doubt(err)
		}
		return fmt.Errorf("update Lease %s: %w", place, err)
	}
	m.hold(h, lease, sent)
	return nil
}

func (m *Manager) get(ctx context.Context, place types.NamespacedName) (*coordinationv1.Lease, error) {
	lease, err := m.client.Leases(place.Namespace).Get(ctx, place.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get Lease %s: %w", place, err)
	}
	return lease, nil
}

func (m *Manager) hold(h Holder, lease *coordinationv1.Lease, since time.Time) {
	lasts := duration(lease, 0)
	if s, shared := sharedlease.Of(lease); shared {
		own, _ := s.Reader(h.Identity)
		lasts = own.Duration()
	}
	m.memory.hold(h.Identity, heldLease{place: placeOf(lease), lease: remembered(lease), since: since, lasts: lasts})
}
