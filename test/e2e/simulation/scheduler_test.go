package simulation

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// scheduler stands above the line of each process. It holds every request until the
// simulation lets it go, one at a time, so that the order in which requests take
// effect is the simulation's choice alone.
type scheduler struct {
	mu      sync.Mutex
	waiting []*held
	arrived chan struct{}
	stopped map[int]time.Time // until when a process does not see what it was answered
	sent    int               // how many requests were let go
}

// onBehalf is the key under which a context has the name of the Transaction that is run.
type onBehalf struct{}

// held is a request that waits for its turn.
type held struct {
	process    int
	name, body string
	// after is how many requests had been let go when it came, and whose the Transaction
	// for which it was made. They tell apart requests that are the same otherwise: of
	// several goroutines that were woken at once nobody knows which comes first.
	after int
	whose string
	// send sends it. Who lets it go calls that, and not who waits for the answer, whose
	// stack would have to grow for it.
	send func() (*http.Response, error)
	over chan struct{} // closed when it was sent

	answer *http.Response
	err    error
	end    string // what became of it
}

func newScheduler() *scheduler {
	return &scheduler{arrived: make(chan struct{}, 1), stopped: map[int]time.Time{}}
}

// wrap holds the requests of one process.
func (s *scheduler) wrap(process int) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			h, err := s.hold(process, req, next)
			if err != nil {
				return nil, err
			}
			select {
			case <-h.over:
			case <-req.Context().Done():
				if s.remove(h) {
					return nil, req.Context().Err()
				}
				<-h.over // It is being sent, and what ended the context may have come of that.
			}
			time.Sleep(s.until(process))
			return h.answer, h.err
		})
	}
}

// stop has a process see nothing for some time. What it has asked for is answered.
func (s *scheduler) stop(process int, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped[process] = time.Now().Add(d)
}

// until is how long a process is stopped yet.
func (s *scheduler) until(process int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.stopped[process])
}

func (s *scheduler) hold(process int, req *http.Request, next http.RoundTripper) (*held, error) {
	whose, _ := req.Context().Value(onBehalf{}).(string)
	h := &held{process: process, whose: whose, name: req.Method + " " + req.URL.RequestURI() + " " + req.Header.Get("Impersonate-User"), over: make(chan struct{})}
	h.send = func() (*http.Response, error) { return next.RoundTrip(req) }
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		h.body, req.Body = string(body), io.NopCloser(bytes.NewReader(body))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.after = s.sent
	s.waiting = append(s.waiting, h)
	select {
	case s.arrived <- struct{}{}:
	default:
	}
	return h, nil
}

// roundTripper is a transport of which every request can be given up on.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// CancelRequest has nothing to do: a request ends with its context.
func (f roundTripper) CancelRequest(*http.Request) {}

// ready returns the requests that may go, in an order that does not depend on which
// goroutine came first. Those of frozen processes are left out.
func (s *scheduler) ready(frozen func(process int) bool) []*held {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*held
	for _, h := range s.waiting {
		if !frozen(h.process) {
			out = append(out, h)
		}
	}
	slices.SortStableFunc(out, func(a, b *held) int {
		return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.name, b.name), cmp.Compare(a.body, b.body),
			cmp.Compare(a.after, b.after), cmp.Compare(a.whose, b.whose))
	})
	return out
}

// let lets a request go.
func (s *scheduler) let(h *held) {
	if !s.remove(h) {
		return
	}
	s.mu.Lock()
	s.sent++
	s.mu.Unlock()
	if h.answer, h.err = h.send(); h.err != nil { //nolint:bodyclose // it is closed by whom it is for
		h.end = h.err.Error()
	} else {
		h.end = h.answer.Status
	}
	close(h.over)
}

// remove takes a request out, and reports whether it still waited.
func (s *scheduler) remove(h *held) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, h)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return true
}
