package memory

import "time"

// Waiting is how long the Transaction has waited for what another client holds up.
func (m *Memory) Waiting() (long time.Duration) {
	now := m.all.clock.Now()
	m.note(func(e *entry) {
		if e.waiting.IsZero() || now.Before(e.waiting) {
			e.waiting = now
		}
		long = now.Sub(e.waiting)
	})
	return long
}

// WaitingEnded notes that something was done.
func (m *Memory) WaitingEnded() { m.note(func(e *entry) { e.waiting = time.Time{} }) }

// CheckedReady notes that what is waited for is looked at.
func (m *Memory) CheckedReady() {
	now := m.all.clock.Now()
	m.note(func(e *entry) { e.looked = now })
}

// SinceCheckedReady is how long ago that was.
func (m *Memory) SinceCheckedReady() (ago time.Duration) {
	now := m.all.clock.Now()
	m.note(func(e *entry) { ago = now.Sub(e.looked) })
	return ago
}

// LookFrom is the item that the next look at what is waited for begins with.
func (m *Memory) LookFrom() (item int) {
	m.note(func(e *entry) { item = e.lookFrom })
	return item
}

// SetLookFrom notes it.
func (m *Memory) SetLookFrom(item int) { m.note(func(e *entry) { e.lookFrom = item }) }

// Begun notes that a change is begun.
func (m *Memory) Begun() {
	now := m.all.clock.Now()
	m.note(func(e *entry) { e.begun = now })
}

// SinceBegun is how long ago a change was last begun. In a process that has begun none it
// counts from now: another may have just begun one.
func (m *Memory) SinceBegun() (ago time.Duration) {
	now := m.all.clock.Now()
	m.note(func(e *entry) {
		if e.begun.IsZero() || now.Before(e.begun) {
			e.begun = now
		}
		ago = now.Sub(e.begun)
	})
	return ago
}

// GoneFor is how long the Transaction is known to be gone.
func (m *Memory) GoneFor() (long time.Duration) {
	now := m.all.clock.Now()
	m.note(func(e *entry) {
		if e.missed.IsZero() {
			e.missed = now
		}
		long = now.Sub(e.missed)
	})
	return long
}

// ToldToStop reports whether others were told, by a checkpoint, that nothing further is to be
// rolled back by this generation of the spec.
func (m *Memory) ToldToStop() (told bool) {
	m.note(func(e *entry) { told = e.spared == m.txn.Generation })
	return told
}

// TellToStop notes that they were, and begins the wait for their requests.
func (m *Memory) TellToStop() {
	m.note(func(e *entry) {
		clear(e.asked)
		e.spared = m.txn.Generation
	})
}
