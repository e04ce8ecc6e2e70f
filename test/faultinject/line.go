package faultinject

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Injection is what happens at one attempt to send a request.
type Injection struct {
	At At
	// Fault is what happens to the request.
	Fault Fault
	// Act, if there is one, is what another client does just before the request is sent.
	Act func(ctx context.Context)
}

// Delays of faults. They are far below the engine's settle time, within which a
// request that was given up on may land.
const (
	DefaultLateBy    = 100 * time.Millisecond
	DefaultFrozenFor = 500 * time.Millisecond
)

// Line is between all processes of Janus in a run and the API server.
type Line struct {
	// Names makes the names of objects the same in every run, for keys; nil leaves
	// them as they are. It is set before the first process is made.
	Names func(string) string
	// Choose, if there is one, gives the fault of an attempt at which nothing is
	// injected. It is called with the Line locked, and should depend on nothing but
	// the call: requests that are sent side by side come in any order.
	Choose func(Call) Fault
	// LateBy is how long a late request is under way, and FrozenFor how long a
	// frozen watch is silent.
	LateBy, FrozenFor time.Duration

	mu         sync.Mutex
	injections []Injection
	reached    []bool
	position   int
	calls      []Call
	counts     map[string]int
	processes  []*Process
	late       []func() // what is sent when the next process begins
	under      sync.WaitGroup
	underWay   int                      // late requests that have not landed
	answers    map[string][]told        // by path, what reads have told, oldest first
	starting   map[context.Context]bool // requests that were refused by an API server that is not ready
}

// NewLine makes a Line on which the given things happen.
func NewLine(injections ...Injection) *Line {
	return &Line{
		LateBy: DefaultLateBy, FrozenFor: DefaultFrozenFor,
		injections: injections, reached: make([]bool, len(injections)),
		counts: map[string]int{}, answers: map[string][]told{}, starting: map[context.Context]bool{},
	}
}

// Inject adds something that is to happen. It is used for the second fault of a run,
// whose place depends on what followed the first.
func (l *Line) Inject(in Injection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.injections, l.reached = append(l.injections, in), append(l.reached, false)
}

// Calls returns every attempt so far, in the order in which they were made.
func (l *Line) Calls() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls)
}

// Count is how many attempts there were so far.
func (l *Line) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}

// Missed lists what was to happen and has not, because its attempt was not made.
func (l *Line) Missed() []At {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []At
	for i, in := range l.injections {
		if !l.reached[i] {
			out = append(out, in.At)
		}
	}
	return out
}

// Settle waits until no late request is under way.
func (l *Line) Settle() { l.under.Wait() }

// UnderWay is how many late requests have not landed.
func (l *Line) UnderWay() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.underWay
}

func (l *Line) setOut(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underWay += n
}

// begin enters an attempt, and returns its place and what happens to it.
func (l *Line) begin(c Call) (int, []Injection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Nth = l.counts[c.Key]
	l.counts[c.Key]++
	l.position++
	c.Sent = l.position
	c.Older = len(l.answers[c.Path]) > 1
	var here []Injection
	for i, in := range l.injections {
		if in.At == c.At && !l.reached[i] && c.Kind != Aside {
			l.reached[i] = true
			here = append(here, in)
			if in.Fault != NoFault {
				c.Fault = in.Fault
			}
		}
	}
	if len(here) == 0 && l.Choose != nil && c.Kind != Aside {
		if c.Fault = l.Choose(c); c.Fault != NoFault {
			here = append(here, Injection{At: c.At, Fault: c.Fault})
		}
	}
	l.calls = append(l.calls, c)
	return len(l.calls) - 1, here
}

// readyPath is where an API server is asked whether it is ready.
const readyPath = "/readyz"

// refusedAtStart says that the API server has refused a request because it is not ready.
func (l *Line) refusedAtStart(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starting[ctx] = true
}

// unready reports whether the API server is to say that it is not ready: to who asks
// on behalf of a request that was refused for that. Who asks on behalf of another is told
// the truth.
func (l *Line) unready(ctx context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	refused := l.starting[ctx]
	delete(l.starting, ctx)
	return refused
}

// answered enters what the API server said to an attempt.
func (l *Line) answered(n, code int, answer []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.position++
	c := &l.calls[n]
	c.Answered, c.Code, c.Answer = l.position, code, answer
	if code/100 == 2 && !c.DryRun && c.Kind != Watch && c.Subresource != "token" {
		l.learn(*c, told{code, answer})
	}
}

// told is what a read of a path has told, or would have; a code of 404 stands for
// nothing at all.
type told struct {
	code   int
	answer []byte
}

// learn keeps what reads tell from now on.
func (l *Line) learn(c Call, now told) {
	path := c.Path
	if c.Kind == Write {
		path = objectPath(c)
	}
	known := l.answers[path]
	switch {
	case c.Kind == Write && c.Method == http.MethodPost && len(known) == 0:
		known = append(known, told{code: http.StatusNotFound})
	case c.Kind == Write && c.Method == http.MethodDelete && !waits(now.answer):
		now = told{code: http.StatusNotFound}
	}
	if last := len(known) - 1; last < 0 || known[last].code != now.code || !bytes.Equal(known[last].answer, now.answer) {
		known = append(known, now)
	}
	l.answers[path] = known
}

// waits reports whether the answer to a deletion shows an object that is still there.
func waits(answer []byte) bool {
	var object struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Finalizers []string `json:"finalizers"`
		} `json:"metadata"`
	}
	return json.Unmarshal(answer, &object) == nil && object.Kind != "Status" && len(object.Metadata.Finalizers) > 0
}

// older is what a read of a path would have told before the last change that the
// Line knows of.
func (l *Line) older(path string) (told, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.answers[path]; len(known) > 1 {
		return known[len(known)-2], true
	}
	return told{}, false
}

// objectPath is the path at which the object of a write is read.
func objectPath(c Call) string {
	path := c.Path
	if c.Subresource != "" {
		path = path[:len(path)-len(c.Subresource)-1]
	}
	if c.Method == http.MethodPost && c.Name != "" {
		path += "/" + c.Name
	}
	return path
}
