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
	if dropped := c.note(conn, state); dropped != nil {
		_ = dropped.Close()
	}
}

// note notes what a connection does, and returns the one that is to be closed for it. If something
// is asked on all others, that is the new one. The server is told of its end later.
func (c *connections) note(conn net.Conn, state http.ConnState) (dropped net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(other net.Conn) bool { return other == conn })
	switch state {
	case http.StateNew:
		c.open[conn] = true
		c.waiting = append(c.waiting, conn)
		if len(c.open) > c.most {
			dropped, c.waiting = c.waiting[0], c.waiting[1:]
			delete(c.open, dropped)
		}
	case http.StateIdle:
		c.waiting = append(c.waiting, conn)
	case http.StateHijacked, http.StateClosed:
		delete(c.open, conn)
	}
	return dropped
}
