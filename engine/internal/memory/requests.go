package memory

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/outcome"
)

// SettlingSince returns when this process began to wait for a request for item i to land or not:
// another machine's clock proves nothing. It begins with the items for which one may land
// together.
func (m *Memory) SettlingSince(i int, mayLand func(j int) bool) (since time.Time) {
	now := m.all.clock.Now()
	m.note(func(e *entry) {
		if since, ok := e.asked[i]; !ok || now.Before(since) {
			if e.asked == nil {
				e.asked = map[int]time.Time{}
			}
			e.asked[i] = now
			for j := range m.txn.Status.Items {
				if _, ok := e.asked[j]; !ok && mayLand(j) {
					e.asked[j] = now
				}
			}
		}
		since = e.asked[i]
	})
	return since
}

// Settled ends the waits for requests for item i, and for the control plane.
func (m *Memory) Settled(i int) {
	m.note(func(e *entry) {
		delete(e.asked, i)
		delete(e.refused, i)
	})
}

// AllSettled ends the wait for all requests.
func (m *Memory) AllSettled() { m.note(func(e *entry) { clear(e.asked) }) }

// Undone returns what came of rolling item i back, if this process has.
func (m *Memory) Undone(i int) (undone outcome.Undone, ok bool) {
	m.note(func(e *entry) { undone, ok = e.undone[i] })
	return undone, ok
}

// Undo notes that item i is rolled back.
func (m *Memory) Undo(i int, undone outcome.Undone) {
	now := m.all.clock.Now()
	m.note(func(e *entry) {
		if e.undone == nil {
			e.undone = map[int]outcome.Undone{}
		}
		e.undone[i], e.restored = undone, now
	})
}

// Recreated returns the uid of the object that this process has created again for item i; empty if
// there is none.
func (m *Memory) Recreated(i int) (uid types.UID) {
	m.note(func(e *entry) { uid = e.recreated[i] })
	return uid
}

// Recreate notes that the object of item i was created again.
func (m *Memory) Recreate(i int, uid types.UID) {
	m.note(func(e *entry) {
		if e.recreated == nil {
			e.recreated = map[int]types.UID{}
		}
		e.recreated[i] = uid
	})
}

// SinceRestored is how long ago an item was last rolled back.
func (m *Memory) SinceRestored() (ago time.Duration) {
	now := m.all.clock.Now()
	m.note(func(e *entry) {
		if e.restored.IsZero() || now.Before(e.restored) {
			e.restored = now // by another process, perhaps a moment ago
		}
		ago = now.Sub(e.restored)
	})
	return ago
}

// SinceRefused is how long ago the rollback of item i was first refused for a reason that the control
// plane may remove.
func (m *Memory) SinceRefused(i int) (ago time.Duration) {
	now := m.all.clock.Now()
	m.note(func(e *entry) {
		if e.refused == nil {
			e.refused = map[int]time.Time{}
		}
		if since, known := e.refused[i]; !known || now.Before(since) {
			e.refused[i] = now
		}
		ago = now.Sub(e.refused[i])
	})
	return ago
}

// Leftovers is what may be left of a Transaction.
type Leftovers struct {
	// Unrecorded means that locks or before-images may be there that no checkpoint covers.
	Unrecorded bool
	// Doubt means that a creation may have been sent whose outcome is not known.
	Doubt bool
	// Images is where before-images were last; nil if there were none.
	Images *api.RollbackRef
}

// Leftovers returns what may be left of the Transaction; ok means that something may.
func (m *Memory) Leftovers() (left Leftovers, ok bool) {
	e, ok := m.peek()
	return Leftovers{e.unrecorded, !e.doubt.IsZero(), e.images}, ok
}

// Unrecorded reports whether locks or before-images may be there that no checkpoint covers.
func (m *Memory) Unrecorded() (unrecorded bool) {
	m.note(func(e *entry) { unrecorded = e.unrecorded })
	return unrecorded
}

// SetUnrecorded notes whether locks or before-images may be there that no checkpoint covers.
func (m *Memory) SetUnrecorded(unrecorded bool) {
	m.note(func(e *entry) {
		e.strays = e.strays || e.unrecorded && unrecorded // What was saved before is not what will be recorded.
		e.unrecorded, e.txn = unrecorded, keptOf(m.txn)
	})
}

// NamesAll reports whether the status names all before-images that there can be: this process has made
// the Transaction what it is from the beginning, all that it saved was answered and is on record, and
// it was saved once. Of one of which a second plan was made, another process may have saved some for the
// first: it is met as one for which nothing was taken.
func (m *Memory) NamesAll() bool {
	e, ok := m.peek()
	return ok && !plan.PlannedBefore(m.txn) && e.doubt.IsZero() && !e.unrecorded && !e.strays && e.version == m.txn.ResourceVersion
}

// SetImages notes where before-images were saved.
func (m *Memory) SetImages(ref *api.RollbackRef) { m.note(func(e *entry) { e.images = ref }) }

// Doubt notes that a creation of a lock or a before-image may be under way.
func (m *Memory) Doubt() {
	now := m.all.clock.Now()
	m.note(func(e *entry) { e.doubt, e.txn = now, keptOf(m.txn) })
}

// DoubtLeft is how much longer a creation may be under way that lands within settle; zero or
// less if none is.
func (m *Memory) DoubtLeft(settle time.Duration) (left time.Duration) {
	now := m.all.clock.Now()
	m.note(func(e *entry) {
		if e.doubt.IsZero() {
			return
		}
		if now.Before(e.doubt) {
			e.doubt = now // The clock has been set back.
		}
		left = settle - now.Sub(e.doubt)
	})
	return left
}
