package lockmgr

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/sharedlease"
)

// An entryKey names an entry of a shared Lease. One holder may be a reader and the next.
type entryKey struct {
	holder string
	next   bool
}

func keyOfEntry(e sharedlease.Entry, next bool) entryKey { return entryKey{e.Holder, next} }

// An observedEntry is an entry as it was first seen.
type observedEntry struct {
	uid   types.UID // of the Lease
	over  string
	since time.Time
}

// watchEntries is watch for the entries of a shared Lease: it returns how long this process has
// seen each of them as it is.
func (m *memory) watchEntries(identity string, lease *coordinationv1.Lease, s sharedlease.Sharing, now time.Time) map[entryKey]time.Duration {
	m.watch(identity, lease, now)
	m.mu.Lock()
	defer m.mu.Unlock()
	observed := m.seen[placeOf(lease)]
	if observed == nil {
		observed = &observedRecord{} // The holder was forgotten in between.
	}
	known, stood := map[entryKey]observedEntry{}, map[entryKey]time.Duration{}
	note := func(e sharedlease.Entry, next bool) {
		key := keyOfEntry(e, next)
		was, ok := observed.entries[key]
		if !ok || was.uid != lease.UID || was.over != e.Over || now.Before(was.since) {
			was = observedEntry{uid: lease.UID, over: e.Over, since: now}
		}
		known[key], stood[key] = was, now.Sub(was.since)
	}
	for _, r := range s.Readers {
		note(r, false)
	}
	if s.Next != nil {
		note(*s.Next, true)
	}
	observed.entries = known
	return stood
}
