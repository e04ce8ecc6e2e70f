package lockmgr

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
)

// memory is what a Manager knows without asking. It grows with the locks that
// holders hold or wait for and shrinks with Release and Forget; a record of
// another client is dropped when the last holder that waits for it has it, has
// found it gone, or has ended.
type memory struct {
	mu sync.Mutex
	// held is, by holder and Lease, what is ours or may be.
	held map[string]map[types.NamespacedName]heldLease
	// seen is when each record of another client was first seen as it is.
	seen map[types.NamespacedName]*observedRecord
	// waits is, by holder, the records in seen that it waits for.
	waits map[string]map[types.NamespacedName]struct{}
}

// A heldLease is a Lease that is ours or may be. It is a value: anyone who changes
// one stores it again, and nobody changes the Lease it points to.
type heldLease struct {
	place types.NamespacedName
	// lease is the Lease as the API server last answered it. It is nil while
	// the outcome of its create is not known.
	lease *coordinationv1.Lease
	// since is when the request that wrote it was about to be sent: nobody
	// else can have seen it before.
	since time.Time
	// lasts is how long the lock lasts from then on.
	lasts time.Duration
	// settled is set once the other place has been ruled out; see standin.go.
	settled bool
}

// fresh says whether more than two thirds of the time are left.
func (t heldLease) fresh(now time.Time) bool { return t.freshFor(now, t.lasts/3) }

// freshFor says whether less than this time is used up.
func (t heldLease) freshFor(now time.Time, most time.Duration) bool {
	used := now.Sub(t.since)
	return t.lease != nil && used >= 0 && used < most
}

// A observedRecord is a record and when it was first seen. Every write changes the
// resourceVersion, so a record with the same uid and resourceVersion has the
// same holder, renewTime and leaseTransitions too.
type observedRecord struct {
	uid     types.UID
	version string
	since   time.Time
	waiters int
	// entries are those of a shared Lease.
	entries map[entryKey]observedEntry
}

func newMemory() *memory {
	return &memory{
		held:  map[string]map[types.NamespacedName]heldLease{},
		seen:  map[types.NamespacedName]*observedRecord{},
		waits: map[string]map[types.NamespacedName]struct{}{},
	}
}

// at returns what the holder has, or may have, at the places.
func (m *memory) at(identity string, places []types.NamespacedName) []heldLease {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []heldLease
	for _, place := range places {
		if t, ok := m.held[identity][place]; ok {
			found = append(found, t)
		}
	}
	return found
}

// doubt notes that a Lease is about to be created: until the answer is known
// it may be ours. What is known of an earlier Lease stays, for its uid tells
// the two apart.
func (m *memory) doubt(identity string, place types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.held[identity][place]; !ok {
		m.store(identity, heldLease{place: place})
	}
}

// hold notes that a Lease is ours as answered. A Lease that was settled stays
// so as long as it is the same one.
func (m *memory) hold(identity string, t heldLease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.held[identity][t.place]; old.lease != nil && old.lease.UID == t.lease.UID {
		t.settled = t.settled || old.settled
	}
	m.store(identity, t)
	m.unwatch(identity, t.place)
}

// settle notes that the other place has been ruled out.
func (m *memory) settle(identity string, place types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t, ok := m.held[identity][place]; ok {
		t.settled = true
		m.store(identity, t)
	}
}

// blur notes that a Lease is ours or not: a request to delete it may be under way.
func (m *memory) blur(identity string, place types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.held[identity][place]; ok {
		m.store(identity, heldLease{place: place})
	}
}

// blurAll notes that every Lease of the holder is ours or not.
func (m *memory) blurAll(identity string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for place := range m.held[identity] {
		m.store(identity, heldLease{place: place})
	}
}

// drop notes that a Lease is not ours.
func (m *memory) drop(identity string, place types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.held[identity], place)
	if len(m.held[identity]) == 0 {
		delete(m.held, identity)
	}
}

// watch notes that the holder waits for a record that was just read, and
// returns how long this process has seen the record as it is.
func (m *memory) watch(identity string, lease *coordinationv1.Lease, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	place := placeOf(lease)
	s, ok := m.seen[place]
	if !ok {
		s = &observedRecord{}
		m.seen[place] = s
	}
	if s.uid != lease.UID || s.version != lease.ResourceVersion || now.Before(s.since) {
		s.uid, s.version, s.since = lease.UID, lease.ResourceVersion, now
	}
	if _, ok := m.waits[identity][place]; !ok {
		if m.waits[identity] == nil {
			m.waits[identity] = map[types.NamespacedName]struct{}{}
		}
		m.waits[identity][place] = struct{}{}
		s.waiters++
	}
	return now.Sub(s.since)
}

// watched says whether a caller waits for the Lease, so that it likely exists.
func (m *memory) watched(place types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.seen[place]
	return ok
}

// isWaiting says whether the holder waits for one of the Leases.
func (m *memory) isWaiting(identity string, places []types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, place := range places {
		if _, ok := m.waits[identity][place]; ok {
			return true
		}
	}
	return false
}

// stopWatching notes that the holder does not wait for the Leases any more.
func (m *memory) stopWatching(identity string, places ...types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, place := range places {
		m.unwatch(identity, place)
	}
}

// forget drops all that is remembered for the holder.
func (m *memory) forget(identity string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.held, identity)
	for place := range m.waits[identity] {
		m.unwatch(identity, place)
	}
}

// store needs the mutex.
func (m *memory) store(identity string, t heldLease) {
	if m.held[identity] == nil {
		m.held[identity] = map[types.NamespacedName]heldLease{}
	}
	m.held[identity][t.place] = t
}

// unwatch needs the mutex.
func (m *memory) unwatch(identity string, place types.NamespacedName) {
	if _, ok := m.waits[identity][place]; !ok {
		return
	}
	delete(m.waits[identity], place)
	if len(m.waits[identity]) == 0 {
		delete(m.waits, identity)
	}
	s := m.seen[place]
	s.waiters--
	if s.waiters == 0 {
		delete(m.seen, place)
	}
}
