package janustest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"

	"janus.io/janus/mutate"
)

// Fault is what becomes of one attempt to write.
type Fault string

// The faults. A crash lets every later request of the process fail, until a test
// starts another.
const (
	NoFault     Fault = ""
	CrashBefore Fault = "crash-before-send"
	CrashAfter  Fault = "crash-after-applied"
	LostReply   Fault = "reply-lost"
	FailedNot   Fault = "500-not-applied"
	FailedYet   Fault = "500-applied"
	TooMany     Fault = "429"
)

// Faults lists every fault.
var Faults = []Fault{CrashBefore, CrashAfter, LostReply, FailedNot, FailedYet, TooMany}

// Write is a request to write that the API server has answered, whatever became
// of its answer.
type Write struct {
	Method, Path string
	// User is whom the request impersonates; empty for a request of Janus itself.
	User string
	// DryRun is set for a request that was to change nothing, wherever it says so.
	DryRun bool
	// HandOver is set for a request that gave fields to other owners after a commit.
	HandOver bool
	Code     int
}

// Effective reports whether the request has changed a value.
func (w Write) Effective() bool { return w.Code/100 == 2 && !w.DryRun && !w.HandOver }

// Wire is between Janus and the API server, below client-go's retries. It numbers
// the attempts to write, from 0, over all processes, and lets one of them fail.
// Events are not counted: they are sent at any time, and nothing depends on them.
type Wire struct {
	mu      sync.Mutex
	at      int
	path    string // of the request that meets the fault, if at is negative
	hit     bool
	fault   Fault
	seen    int
	writes  []Write
	crashed chan struct{}
}

// NewWire makes a Wire whose n-th attempt to write meets a fault.
func NewWire(n int, f Fault) *Wire {
	return &Wire{at: n, fault: f, crashed: make(chan struct{})}
}

// NewWireOn makes a Wire on which the first write, dry runs apart, to a path that
// ends so meets a fault.
func NewWireOn(path string, f Fault) *Wire {
	return &Wire{at: -1, path: path, fault: f, crashed: make(chan struct{})}
}

// Process is the transport of one process: a crash ends that process alone.
func (w *Wire) Process() Option { return WithTransport((&process{wire: w}).wrap) }

// Crashed is closed when the process has crashed.
func (w *Wire) Crashed() <-chan struct{} { return w.crashed }

// Attempts is how many attempts to write there were.
func (w *Wire) Attempts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// Reached reports whether the fault has happened.
func (w *Wire) Reached() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hit && w.fault != NoFault
}

// Effective gives the requests that have changed the object at a path such as
// "configmaps/app"; one that made it counts too.
func (w *Wire) Effective(e *Env, resource, name string) []Write {
	w.mu.Lock()
	defer w.mu.Unlock()
	collection := "/namespaces/" + e.Namespace + "/" + resource
	return slices.DeleteFunc(slices.Clone(w.writes), func(r Write) bool {
		return !r.Effective() || !strings.HasSuffix(r.Path, collection+"/"+name) && !strings.HasSuffix(r.Path, collection+"?"+name)
	})
}

func (w *Wire) next(req *http.Request) Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.seen
	w.seen++
	here := w.at < 0 && !w.hit && strings.HasSuffix(req.URL.Path, w.path) && !req.URL.Query().Has("dryRun")
	if n == w.at || here {
		w.hit = true
		return w.fault
	}
	return NoFault
}

func (w *Wire) record(r Write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, r)
}

// process is one process' end of a Wire.
type process struct {
	wire *Wire
	mu   sync.Mutex
	dead bool
}

func (p *process) wrap(next http.RoundTripper) http.RoundTripper { return &wireTransport{p, next} }

var _ transport.WrapperFunc = (&process{}).wrap

func (p *process) crash() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		p.dead = true
		close(p.wire.crashed)
	}
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

type wireTransport struct {
	process *process
	next    http.RoundTripper
}

// errLost is how a request ends that gets no answer.
var errLost = fmt.Errorf("a fault of the test: %w", io.ErrUnexpectedEOF)

// RoundTrip implements http.RoundTripper.
func (t *wireTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.process.isDead() {
		return nil, errLost
	}
	if req.Method == http.MethodGet || strings.HasSuffix(req.URL.Path, "/events") || strings.Contains(req.URL.Path, "/events/") {
		return t.next.RoundTrip(req)
	}
	fault := t.process.wire.next(req)
	switch fault {
	case CrashBefore:
		t.process.crash()
		return nil, errLost
	case FailedNot:
		return answer(req, http.StatusInternalServerError, metav1.StatusReasonInternalError, 0), nil
	case TooMany:
		return answer(req, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, 1), nil
	}
	resp, err := t.send(req)
	switch fault {
	case CrashAfter:
		t.process.crash()
		return nil, errLost
	case LostReply:
		return nil, errLost
	case FailedYet:
		return answer(req, http.StatusInternalServerError, metav1.StatusReasonInternalError, 0), nil
	}
	return resp, err
}

// send sends the request, and when it is to be forgotten waits for the answer all
// the same: the API server has then done what it will do.
func (t *wireTransport) send(req *http.Request) (*http.Response, error) {
	w := Write{Method: req.Method, Path: req.URL.Path, User: req.Header.Get("Impersonate-User"), DryRun: req.URL.Query().Has("dryRun"), HandOver: req.URL.Query().Get("fieldManager") == mutate.Heir}
	if req.Body != nil {
		content, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, fmt.Errorf("read the request: %w", err)
		}
		req.Body = io.NopCloser(bytes.NewReader(content))
		var body struct {
			DryRun   []string `json:"dryRun"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if json.Unmarshal(content, &body) == nil {
			w.DryRun = w.DryRun || len(body.DryRun) > 0
			if req.Method == http.MethodPost {
				w.Path += "?" + body.Metadata.Name
			}
		}
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(resp.Body)
	if cerr := resp.Body.Close(); err == nil {
		err = cerr
	}
	resp.Body = io.NopCloser(bytes.NewReader(content))
	w.Code = resp.StatusCode
	t.process.wire.record(w)
	return resp, err
}

// answer is an answer of an API server in trouble.
func answer(req *http.Request, code int32, reason metav1.StatusReason, retryAfter int32) *http.Response {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: "a fault of the test",
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if retryAfter > 0 {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
		header.Set("Retry-After", fmt.Sprint(retryAfter))
	}
	body, err := json.Marshal(status)
	if err != nil {
		body = []byte(err.Error())
	}
	return &http.Response{
		Status: http.StatusText(int(code)), StatusCode: int(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}
}
