package faultinject

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Process is one process of Janus: a crash ends it and no other.
type Process struct {
	line    *Line
	number  int
	once    sync.Once
	crashed chan struct{}
}

// Process makes the next process of Janus. What was to land after a restart is sent
// a little later.
func (l *Line) Process() *Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &Process{line: l, number: len(l.processes), crashed: make(chan struct{})}
	l.processes = append(l.processes, p)
	for _, send := range l.late {
		time.AfterFunc(l.LateBy, send)
	}
	l.late = nil
	return p
}

// Wrap puts the Line under a client; it goes to rest.Config.Wrap.
func (p *Process) Wrap(next http.RoundTripper) http.RoundTripper { return &transport{p, next} }

// Crash ends the process: none of its further requests is sent.
func (p *Process) Crash() { p.once.Do(func() { close(p.crashed) }) }

// Crashed is closed when the process has crashed.
func (p *Process) Crashed() <-chan struct{} { return p.crashed }

func (p *Process) dead() bool {
	select {
	case <-p.crashed:
		return true
	default:
		return false
	}
}

// ErrLost is how a request ends that gets no answer.
var ErrLost = fmt.Errorf("a fault of the test: %w", io.ErrUnexpectedEOF)

// errTimeout is how a request ends that took too long.
type errTimeout struct{}

func (errTimeout) Error() string   { return "a fault of the test: i/o timeout" }
func (errTimeout) Timeout() bool   { return true }
func (errTimeout) Temporary() bool { return true }
