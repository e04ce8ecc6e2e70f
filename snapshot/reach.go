package snapshot

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// reach is how far up the objects of Transactions are numbered that this process has sent, or
// has found. A request that was given up on may land when those before it are gone, so that
// they lead to it no more. It is no more than a memory: a process that has none finds what
// the objects that are there lead to.
type reach struct {
	mu sync.Mutex
	of *lru.Cache // int by series
}

// series are the objects of a kind that a Transaction has.
type series struct {
	owner types.UID
	kind  kind
}

// maxSeries is how many it remembers, those used last.
const maxSeries = 1000

func newReach() reach { return reach{of: lru.New(maxSeries)} }

// note notes a number that is in use, or may be.
func (r *reach) note(o Owner, p place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of := (series{o.UID, p.kind}); p.number > r.read(of) {
		r.of.Add(of, p.number)
	}
}

// last is the highest number that was noted; zero for none.
func (r *reach) last(o Owner, k kind) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read(series{o.UID, k})
}

func (r *reach) read(of series) int {
	n, _ := r.of.Get(of)
	number, _ := n.(int)
	return number
}
