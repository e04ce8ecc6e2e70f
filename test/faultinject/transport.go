package faultinject

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// transport is one client's end of a Line.
type transport struct {
	process *Process
	next    http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	p := t.process
	if p.dead() {
		return nil, ErrLost
	}
	if req.URL.Path == readyPath && p.line.unready(req.Context()) {
		return status(req, http.StatusInternalServerError, metav1.StatusReasonInternalError, 0), nil
	}
	body, err := drain(req)
	if err != nil {
		return nil, err
	}
	names := p.line.Names
	if names == nil {
		names = func(name string) string { return name }
	}
	c := callOf(req, body, names)
	c.Process = p.number
	n, here := p.line.begin(c)
	fault := NoFault
	for _, in := range here {
		if in.Act != nil {
			in.Act(context.WithoutCancel(req.Context()))
		}
		if in.Fault != NoFault {
			fault = in.Fault
		}
	}
	if p.dead() {
		return nil, ErrLost // the process has been ended
	}
	if fault.crashes() && fault != CrashAfter {
		p.Crash()
	}
	if fault == Late || fault == LateAfterRestart {
		t.later(req, body, n, fault)
	}
	if fault == Starting {
		p.line.refusedAtStart(req.Context())
	}
	if !fault.sends() {
		return refuse(req, fault)
	}
	return t.send(req, n, c, fault)
}

// send sends the request, and when the answer is to be forgotten waits for it all
// the same: the API server has then done what it will do.
func (t *transport) send(req *http.Request, n int, c Call, fault Fault) (*http.Response, error) {
	line := t.process.line
	older, stale := line.older(c.Path)
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if c.Kind == Watch {
		line.answered(n, resp.StatusCode, nil)
		resp.Body = disturb(resp.Body, fault, line.FrozenFor)
		return resp, nil
	}
	content, err := readAll(resp.Body)
	if err != nil {
		return nil, err
	}
	line.answered(n, resp.StatusCode, content)
	switch fault {
	case CrashAfter:
		t.process.Crash()
		return nil, ErrLost
	case LostReply:
		return nil, ErrLost
	case FailedApplied:
		return status(req, http.StatusInternalServerError, metav1.StatusReasonInternalError, 0), nil
	case TimedOutApplied:
		// It asks for a repetition, as the API server does when a request takes too long.
		return status(req, http.StatusGatewayTimeout, metav1.StatusReasonTimeout, 1), nil
	case Stale:
		if stale && older.code == http.StatusNotFound {
			return status(req, http.StatusNotFound, metav1.StatusReasonNotFound, 0), nil
		}
		if stale {
			content, resp.StatusCode, resp.Status = older.answer, older.code, http.StatusText(older.code)
		}
	case Truncated:
		content = halved(content)
	}
	if t.process.dead() {
		return nil, ErrLost
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(content)), int64(len(content))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// later sends the request when its sender has given up on it.
func (t *transport) later(req *http.Request, body []byte, n int, fault Fault) {
	line := t.process.line
	req = req.Clone(context.WithoutCancel(req.Context()))
	req.Body = io.NopCloser(bytes.NewReader(body))
	line.under.Add(1)
	line.setOut(1)
	send := func() {
		defer line.under.Done()
		defer line.setOut(-1)
		resp, err := t.next.RoundTrip(req)
		if err != nil {
			return
		}
		defer func() { _ = resp.Body.Close() }()
		content, err := readAll(resp.Body)
		if err == nil {
			line.answered(n, resp.StatusCode, content)
		}
	}
	if fault == Late {
		time.AfterFunc(line.LateBy, send)
		return
	}
	line.mu.Lock()
	defer line.mu.Unlock()
	line.late = append(line.late, send)
}

// refuse answers a request that is not sent.
func refuse(req *http.Request, fault Fault) (*http.Response, error) {
	switch fault {
	case Late:
		return nil, errTimeout{}
	case Conflict:
		return status(req, http.StatusConflict, metav1.StatusReasonConflict, 0), nil
	case TooMany:
		return status(req, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, 1), nil
	case Starting, Started:
		return status(req, http.StatusForbidden, metav1.StatusReasonForbidden, 0), nil
	case Failed, ReadFailed:
		return status(req, http.StatusInternalServerError, metav1.StatusReasonInternalError, 0), nil
	case FalseNotFound:
		return status(req, http.StatusNotFound, metav1.StatusReasonNotFound, 0), nil
	case Expired:
		return status(req, http.StatusGone, metav1.StatusReasonExpired, 0), nil
	default:
		return nil, ErrLost
	}
}

// drain reads the body of a request and leaves it to be read again.
func drain(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	content, err := readAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(content))
	return content, nil
}

func readAll(body io.ReadCloser) ([]byte, error) {
	content, err := io.ReadAll(body)
	if cerr := body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("read a body: %w", err)
	}
	return content, nil
}
