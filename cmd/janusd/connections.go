package main

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

// connections bounds how many connections a server has open: one more than that closes the one on
// which nothing has been asked for longest. So who opens many and asks nothing holds up nobody.
type connections struct {
	most int

	mu      sync.Mutex
	open    map[net.Conn]bool
	waiting []net.Conn // on which nothing is asked, the one that has waited longest first
}

func newConnections(most int) *connections {
	return &connections{most: most, open: map[net.Conn]bool{}}
}

// follow is told of each connection what it does.
func (c *connections) follow(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(other net.Conn) bool { return other == conn })
	switch state {
	case http.StateNew:
		c.open[conn] = true
		c.waiting = append(c.waiting, conn)
		if len(c.open) > c.most {
			c.drop()
		}
	case http.StateIdle:
		c.waiting = append(c.waiting, conn)
	case http.StateHijacked, http.StateClosed:
		delete(c.open, conn)
	}
}

// drop closes the connection that has waited longest. If something is asked on all others, that is
// the new one. The server is told of its end later.
func (c *connections) drop() {
	first := c.waiting[0]
	c.waiting = c.waiting[1:]
	delete(c.open, first)
	_ = first.Close()
}
