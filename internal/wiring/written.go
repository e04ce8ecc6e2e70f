package wiring

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/objectid"
)

// maxWritten is how many bytes of objects written may hold, about. What is beyond that
// is read again.
const maxWritten = 8 << 20

// written keeps the targets as the API server answered the writes of changes, so that
// they need not be read for the hand-over, or to be rolled back. A write that relies on one says which version
// it must meet.
type written struct {
	mu   sync.Mutex
	size int
	by   map[types.UID]map[objectid.ID]*unstructured.Unstructured
	// sizes are those of all of them, of those that are not kept too.
	sizes map[types.UID]map[objectid.ID]int
}

func newWritten() *written {
	return &written{by: map[types.UID]map[objectid.ID]*unstructured.Unstructured{}, sizes: map[types.UID]map[objectid.ID]int{}}
}

func (w *written) put(txn types.UID, key objectid.ID, obj *unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.by[txn][key]; old != nil {
		w.size -= sizeOf(old.Object)
		delete(w.by[txn], key)
	}
	size := sizeOf(obj.Object)
	if w.sizes[txn] == nil {
		w.sizes[txn] = map[objectid.ID]int{}
	}
	w.sizes[txn][key] = size
	if w.size+size > maxWritten {
		return
	}
	if w.by[txn] == nil {
		w.by[txn] = map[objectid.ID]*unstructured.Unstructured{}
	}
	w.size += size
	w.by[txn][key] = obj
}

// get returns the target as it was last written, nil if that is not known.
func (w *written) get(txn types.UID, key objectid.ID) *unstructured.Unstructured {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.by[txn][key]
}

// bytes is about how many bytes the target had when it was last written, unread if that is not
// known.
func (w *written) bytes(txn types.UID, key objectid.ID) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if size, known := w.sizes[txn][key]; known {
		return int64(size)
	}
	return unread
}

// take returns it, and drops it.
func (w *written) take(txn types.UID, key objectid.ID) *unstructured.Unstructured {
	w.mu.Lock()
	defer w.mu.Unlock()
	obj := w.by[txn][key]
	if obj != nil {
		w.size -= sizeOf(obj.Object)
		delete(w.by[txn], key)
	}
	return obj
}

// forget drops the targets of a Transaction.
func (w *written) forget(txn types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, obj := range w.by[txn] {
		w.size -= sizeOf(obj.Object)
	}
	delete(w.by, txn)
	delete(w.sizes, txn)
}
