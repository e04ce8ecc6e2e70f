package leasetable

import (
	"context"
	"sync"
)

// together are goroutines that ask at the same time.
type together struct {
	mu      sync.Locker
	alive   int             // those that have not ended
	waiting int             // those that have asked and have no answer yet
	tables  map[*table]bool // those that they have asked
}

type togetherKey struct{}

// Together says that n goroutines with the context that it returns are about to ask. Each calls left when
// it asks no more. Of those that are at it, none has an answer before all have asked.
func (c *Client) Together(ctx context.Context, n int) (joined context.Context, left func()) {
	g := &together{mu: &c.tables.mu, alive: n, tables: map[*table]bool{}}
	return context.WithValue(ctx, togetherKey{}, g), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.alive--
		g.beginIfComplete()
	}
}

// The following need the mutex.

// join notes that one of them has asked a table.
func (g *together) join(t *table) {
	g.waiting++
	g.tables[t] = true
	g.beginIfComplete()
}

// beginIfComplete begins when nobody is left who might ask something else first.
func (g *together) beginIfComplete() {
	if g.waiting < g.alive {
		return
	}
	for t := range g.tables {
		t.begin()
	}
}
