package wiring

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// resumeLife is for how long a pre-flight that has stopped is kept to be resumed. After
// that it begins at the first change.
const resumeLife = 10 * time.Minute

// resumable is what a pre-flight has found out so far. What it has found wrong is found again.
type resumable struct {
	tries *tries
	done  map[int]trial // by item
	since time.Time     // when it stopped
}

// note notes what came of trying the change of an item.
func (b *resumable) note(i int, o trial) {
	if o.err == nil {
		b.done[i] = o
	}
}

// size is about how many bytes it takes.
func (b *resumable) size() int {
	b.tries.mu.Lock()
	defer b.tries.mu.Unlock()
	return b.tries.size + b.tries.read
}

// resumable returns the pre-flight of a Transaction as that ServiceAccount, to be resumed or to begin.
func (f *dryRunCache) resumable(txn, account types.UID) *resumable {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.unfinished[txn]; b != nil && b.tries.account == account && f.clock.Since(b.since) < resumeLife {
		return b
	}
	return &resumable{tries: newTries(txn, account), done: map[int]trial{}}
}

// hasRoom reports whether a pre-flight that stops can be kept. All of them have as much room as what
// was found out by others.
func (f *dryRunCache) hasRoom(b *resumable) bool {
	size := b.size()
	f.mu.Lock()
	defer f.mu.Unlock()
	for txn, other := range f.unfinished {
		switch {
		case f.clock.Since(other.since) >= resumeLife:
			delete(f.unfinished, txn)
		case other != b:
			size += other.size()
		}
	}
	return size <= 2*maxDryRunBytes
}

// resume keeps a pre-flight that stops.
func (f *dryRunCache) resume(b *resumable) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b.since = f.clock.Now()
	f.unfinished[b.tries.txn] = b
}

// end drops a pre-flight that is over.
func (f *dryRunCache) end(txn types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.unfinished, txn)
}

// allWell reports whether nothing was found wrong.
func allWell(trials []trial) bool {
	return !slices.ContainsFunc(trials, func(o trial) bool { return o.err != nil })
}
