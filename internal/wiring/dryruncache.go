package wiring

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"janus.io/janus/mutate"
)

// What the pre-flight has found out about a change holds for its target as it was then,
// so that a change need not be tried again under the lock if its target is unchanged. But
// roles, policies and quotas change too: what was found out does not hold for long.
const dryRunLife = time.Minute

// maxDryRunBytes is how many bytes all of them may hold, about: what changes would make of
// targets, and as much of the targets as they were. What is beyond that is tried, or read, again.
const maxDryRunBytes = 8 << 20

// dryRunCache keeps what pre-flights of this process have found out.
type dryRunCache struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	size int // of forecasts
	read int // of targets
	kept map[types.UID]*tries
	// unfinished are pre-flights that are to be resumed.
	unfinished map[types.UID]*resumable
}

func newDryRunCache(c clock.PassiveClock) *dryRunCache {
	return &dryRunCache{clock: c, kept: map[types.UID]*tries{}, unfinished: map[types.UID]*resumable{}}
}

// tries are the changes of one Transaction that were tried as one ServiceAccount.
type tries struct {
	txn, account types.UID
	since        time.Time

	mu    sync.Mutex
	size  int // of forecasts
	read  int // of targets
	items map[int]tried
	// weighed are how many before-images were weighed, and bytes what they take together.
	weighed, bytes int64
}

// tried is what was found out on a target of a certain version; none if it did not exist.
type tried struct {
	meets    mutate.Version
	forecast mutate.Forecast
	before   *unstructured.Unstructured // the target, as long as there is room for it
}

func newTries(txn, account types.UID) *tries {
	return &tries{txn: txn, account: account, items: map[int]tried{}}
}

// add notes what was found out about an item, as long as there is room for it, and how many
// bytes its before-image takes. It may be called for several items at once.
func (t *tries) add(i int, s seen, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.weighed, t.bytes = t.weighed+1, t.bytes+bytes
	size := forecastSize(s.forecast)
	if t.size+size > maxDryRunBytes {
		return
	}
	t.size += size
	one := tried{meets: mutate.VersionOf(s.before), forecast: s.forecast}
	if s.before != nil {
		if read := sizeOf(s.before.Object); t.read+read <= maxDryRunBytes {
			t.read, one.before = t.read+read, s.before
		}
	}
	t.items[i] = one
}

// average is how many bytes a before-image takes on average; zero if that is not known.
func (t *tries) average() int {
	if t == nil || t.weighed == 0 {
		return 0
	}
	return int(t.bytes / t.weighed)
}

// at returns what was found out about an item, if its target has that version still.
func (t *tries) at(i int, now mutate.Version) (mutate.Forecast, bool) {
	if t == nil {
		return mutate.Forecast{}, false
	}
	known, ok := t.items[i]
	return known.forecast, ok && known.meets == now
}

// has reports whether anything was found out about an item.
func (t *tries) has(i int) bool {
	if t == nil {
		return false
	}
	_, ok := t.items[i]
	return ok
}

// before returns the target of an item as it was, if that is the version which exists now. It is
// the caller's own.
func (t *tries) before(i int, now mutate.Version) (*unstructured.Unstructured, bool) {
	if _, holds := t.at(i, now); !holds || t.items[i].before == nil {
		return nil, false
	}
	return t.items[i].before.DeepCopy(), true
}

// dropTargets drops them, of which there is no room for so many.
func (t *tries) dropTargets() {
	for i, one := range t.items {
		one.before = nil
		t.items[i] = one
	}
	t.read = 0
}

// keep keeps what was found out about a Transaction, if there is room for it.
func (f *dryRunCache) keep(t *tries) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t.since = f.clock.Now()
	f.drop(t.txn)
	for uid, old := range f.kept {
		if f.clock.Since(old.since) > dryRunLife {
			f.drop(uid)
		}
	}
	if f.size+t.size > maxDryRunBytes {
		return
	}
	if f.read+t.read > maxDryRunBytes {
		t.dropTargets()
	}
	f.size, f.read = f.size+t.size, f.read+t.read
	f.kept[t.txn] = t
}

// of returns what was found out about a Transaction as that ServiceAccount, nil if nothing
// was that still holds.
func (f *dryRunCache) of(txn, account types.UID) *tries {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.kept[txn]
	if t == nil || t.account != account || f.clock.Since(t.since) > dryRunLife {
		return nil
	}
	return t
}

// forget drops what was found out about a Transaction.
func (f *dryRunCache) forget(txn types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(txn)
	delete(f.unfinished, txn)
}

func (f *dryRunCache) drop(txn types.UID) {
	if t := f.kept[txn]; t != nil {
		f.size, f.read = f.size-t.size, f.read-t.read
		delete(f.kept, txn)
	}
}

// forecastSize is about how many bytes a forecast takes.
func forecastSize(f mutate.Forecast) int {
	n := 0
	if f.After != nil {
		n += sizeOf(f.After.Object)
	}
	for _, entry := range f.Took {
		if entry.FieldsV1 != nil {
			n += len(entry.FieldsV1.GetRawString())
		}
	}
	for _, owned := range f.Taken {
		for _, path := range owned.Paths {
			n += len(path)
		}
	}
	return n
}

// sizeOf is about how many bytes a decoded value takes.
func sizeOf(v any) int {
	const each = 32
	switch v := v.(type) {
	case string:
		return each + len(v)
	case map[string]any:
		n := each
		for key, value := range v {
			n += each + len(key) + sizeOf(value)
		}
		return n
	case []any:
		n := each
		for _, value := range v {
			n += sizeOf(value)
		}
		return n
	default:
		return each
	}
}
