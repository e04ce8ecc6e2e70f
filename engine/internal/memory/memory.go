package memory

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/outcome"
)

// A request that its sender has given up on, or did not live to see answered, may
// still land. Most come too late to do harm: what they demand of the object is not
// so any more. A creation demands nothing but that the object does not exist. So
// one that may be under way is waited for before it is sent again, and what it may
// have left after the end is looked for.

// Memory is what this process knows of one Transaction that its status does not tell. All
// times are by the clock of this process. It is safe for use by several goroutines.
type Memory struct {
	all *All
	txn *api.Transaction // as the run has it
}

// entry is what is kept.
type entry struct {
	// asked is when this process began to wait for a request for an item to land or not;
	// nil until there is one. Thousands of Transactions that have ended are remembered.
	asked map[int]time.Time
	// doubt is when a creation of a lock or a before-image may have been sent last whose
	// outcome is not known; zero if there was none.
	doubt time.Time
	// unrecorded is set while locks or before-images may be there that no checkpoint of this
	// process covers.
	unrecorded bool
	// strays is set once before-images may be there that no checkpoint will ever name.
	strays bool
	// flight is what is known of open intents, as long as nobody else writes the status.
	flight *Flight
	// version is the resourceVersion that this process has last made.
	version string
	// checkpoints is how many of them this process knows of.
	checkpoints int64
	// undone are the items that this process has rolled back: if the record of one gets
	// lost, what others have written since is not taken for the change. Where another
	// process goes on with the Transaction, a Create is looked at again: only that can be
	// made once more by a request of its that is under way. It is nil until there is one.
	undone map[int]outcome.Undone
	// recreated has the uids of what this process has created again, by item: it does not do so
	// once more if the record of one gets lost. It is nil until there is one.
	recreated map[int]types.UID
	// restored is when it last rolled an item back; zero if it did not.
	restored time.Time
	// refused is since when the rollback of an item waits for the control plane to note a deletion,
	// by item; nil until one does.
	refused map[int]time.Time
	// waiting is since when it waits for what another client holds up; zero if it does not.
	waiting time.Time
	// looked is when it last checked whether what is waited for is ready; zero if it did
	// not.
	looked time.Time
	// lookFrom is the item that the next look begins with.
	lookFrom int
	// spared is the generation of which this process has told others, by a checkpoint, that
	// nothing further is to be rolled back; zero if there is none.
	spared int64
	// begun is when this process last began a change, or was to; zero if it did not.
	begun time.Time
	// failures are the failed attempts that are not on record yet.
	failures int32
	// missed is when it was first found to be gone; zero if it was not.
	missed time.Time
	// txn is the Transaction as this process last knew it when it took something for it.
	txn kept
	// images is where before-images were last; a commit takes that off the status.
	images *api.RollbackRef
}

func newEntry(t *api.Transaction) *entry {
	return &entry{txn: keptOf(t), checkpoints: t.Status.Version}
}

// note changes what is kept, or reads it.
func (m *Memory) note(change func(e *entry)) {
	m.all.mu.Lock()
	defer m.all.mu.Unlock()
	e, ok := m.all.entries[m.txn.UID]
	if !ok {
		e = newEntry(m.txn)
		m.all.entries[m.txn.UID] = e
	}
	change(e)
}

// peek returns what is kept, if anything is.
func (m *Memory) peek() (entry, bool) {
	m.all.mu.Lock()
	defer m.all.mu.Unlock()
	e, ok := m.all.entries[m.txn.UID]
	if !ok {
		return entry{}, false
	}
	return *e, true
}

// Follow goes on with the Transaction as it is stored now.
func (m *Memory) Follow(t *api.Transaction) {
	m.all.mu.Lock()
	defer m.all.mu.Unlock()
	m.txn = t
}

// Forget drops everything: nothing is left of the Transaction.
func (m *Memory) Forget() {
	m.all.mu.Lock()
	defer m.all.mu.Unlock()
	delete(m.all.entries, m.txn.UID)
	m.all.cleared.add(m.txn.UID, m.all.clock.Now())
}

// Retired reports whether the Transaction is to be deleted before its time.
func (m *Memory) Retired() bool {
	m.all.mu.Lock()
	defer m.all.mu.Unlock()
	return m.all.retired[m.txn.UID]
}

// Overtaken reports whether another client has written the Transaction since this process
// did, or may have.
func (m *Memory) Overtaken() bool {
	e, ok := m.peek()
	return ok && e.version != "" && e.version != m.txn.ResourceVersion
}

// Wrote reports whether this process has written the Transaction as it is.
func (m *Memory) Wrote() (yes bool) {
	m.note(func(e *entry) { yes = e.version == m.txn.ResourceVersion })
	return yes
}

// Unanswered notes that a write of the Transaction by this process got no answer. It may still land, like
// that of another process, until the Transaction is written again.
func (m *Memory) Unanswered() { m.note(func(e *entry) { e.version = unanswered }) }

// unanswered is no resourceVersion.
const unanswered = "unanswered"

// Stored notes that this process has written the Transaction, what is in flight from then
// on, and the items whose intents that has put on record.
func (m *Memory) Stored(t *api.Transaction, f *Flight, intents []int) {
	m.Follow(t)
	m.note(func(e *entry) {
		for _, i := range intents {
			delete(e.asked, i)
		}
		e.flight, e.version, e.checkpoints = f, t.ResourceVersion, t.Status.Version
		e.failures = 0
		if t.Status.RollbackRef != nil {
			e.images = t.Status.RollbackRef
		}
	})
}

// Failed counts a failed attempt.
func (m *Memory) Failed() { m.note(func(e *entry) { e.failures++ }) }

// Failures are the failed attempts that are not on record yet.
func (m *Memory) Failures() (n int32) {
	m.note(func(e *entry) { n = e.failures })
	return n
}
