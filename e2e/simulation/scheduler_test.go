package simulation

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"sync"
)

// scheduler stands above the line of each process. It holds every request until the
// simulation lets it go, one at a time, so that the order in which requests take
// effect is the simulation's choice alone.
type scheduler struct {
	mu      sync.Mutex
	waiting []*held
	arrived chan struct{}
}

// held is a request that waits for its turn.
type held struct {
	process    int
	name, body string
	turn       chan struct{}
	end        string // what became of it
}

func newScheduler() *scheduler { return &scheduler{arrived: make(chan struct{}, 1)} }

// wrap holds the requests of one process.
func (s *scheduler) wrap(process int) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			h, err := s.hold(process, req)
			if err != nil {
				return nil, err
			}
			select {
			case <-h.turn:
			case <-req.Context().Done():
				s.remove(h)
				return nil, req.Context().Err()
			}
			resp, err := next.RoundTrip(req)
			if err != nil {
				h.end = err.Error()
			} else {
				h.end = resp.Status
			}
			return resp, err
		})
	}
}

func (s *scheduler) hold(process int, req *http.Request) (*held, error) {
	h := &held{process: process, name: req.Method + " " + req.URL.RequestURI() + " " + req.Header.Get("Impersonate-User"), turn: make(chan struct{})}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		h.body, req.Body = string(body), io.NopCloser(bytes.NewReader(body))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
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

// ready gives the requests that may go, in an order that does not depend on which
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
		return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.name, b.name), cmp.Compare(a.body, b.body))
	})
	return out
}

// let lets a request go.
func (s *scheduler) let(h *held) {
	s.remove(h)
	close(h.turn)
}

func (s *scheduler) remove(h *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(other *held) bool { return other == h })
}
