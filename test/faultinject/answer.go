package faultinject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// status is an answer of an API server in trouble.
func status(req *http.Request, code int32, reason metav1.StatusReason, retryAfter int32) *http.Response {
	s := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: "a fault of the test",
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if retryAfter > 0 {
		s.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
		header.Set("Retry-After", fmt.Sprint(retryAfter))
	}
	body, err := json.Marshal(s)
	if err != nil {
		body = []byte(err.Error())
	}
	return &http.Response{
		Status: http.StatusText(int(code)), StatusCode: int(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}
}

// halved leaves the second half of a list out. What is no list stays as it is.
func halved(content []byte) []byte {
	var list map[string]json.RawMessage
	var items []json.RawMessage
	if json.Unmarshal(content, &list) != nil || json.Unmarshal(list["items"], &items) != nil {
		return content
	}
	var err error
	if list["items"], err = json.Marshal(items[:len(items)/2]); err != nil {
		return content
	}
	if out, err := json.Marshal(list); err == nil {
		return out
	}
	return content
}

// disturb passes the events of a watch on as the fault wants it.
func disturb(events io.ReadCloser, fault Fault, frozenFor time.Duration) io.ReadCloser {
	switch fault {
	case Frozen:
		return freeze(events, frozenFor)
	case Dropped, Duplicated:
	case Reordered:
		reader, writer := io.Pipe()
		go reorder(events, writer, frozenFor)
		return &stream{reader, events}
	default:
		return events
	}
	reader, writer := io.Pipe()
	if fault == Dropped {
		// A server that knows that a watcher has missed events says so, and the watcher
		// lists again; without that nobody could ever know of what was lost.
		time.AfterFunc(frozenFor, func() {
			_, _ = writer.Write([]byte(gap))
			_ = writer.Close()
			_ = events.Close()
		})
	}
	go func() {
		decoder := json.NewDecoder(events)
		for n := 0; ; n++ {
			var event json.RawMessage
			if err := decoder.Decode(&event); err != nil {
				_ = writer.CloseWithError(err)
				return
			}
			var out []byte
			switch {
			case fault == Duplicated:
				out = append(append(out, event...), event...)
			case fault == Dropped && n%2 == 0:
				out = event
			}
			if _, err := writer.Write(out); err != nil {
				_ = events.Close()
				return
			}
		}
	}()
	return &stream{reader, events}
}

// reorder swaps neighbours. An event that has none for a while comes as it is: the next one may be
// long in coming, and nothing is lost on the way.
func reorder(events io.ReadCloser, out *io.PipeWriter, wait time.Duration) {
	read, failed, done := make(chan json.RawMessage), make(chan error, 1), make(chan struct{})
	defer close(done)
	go func() {
		for decoder := json.NewDecoder(events); ; {
			var event json.RawMessage
			if err := decoder.Decode(&event); err != nil {
				failed <- err
				return
			}
			select {
			case read <- event:
			case <-done:
				return
			}
		}
	}()
	var held json.RawMessage
	for {
		var alone <-chan time.Time
		if held != nil {
			alone = time.NewTimer(wait).C
		}
		var next []byte
		select {
		case event := <-read:
			if held == nil {
				held = event
				continue
			}
			next = append(event, held...)
		case <-alone:
			next = held
		case err := <-failed:
			_, _ = out.Write(held)
			_ = out.CloseWithError(err)
			return
		}
		held = nil
		if _, err := out.Write(next); err != nil {
			_ = events.Close()
			return
		}
	}
}

// gap is the event by which an API server tells a watcher to list again.
const gap = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
	`"message":"a fault of the test: too old resource version","reason":"Expired","code":410}}` + "\n"

// stream reads from a pipe and closes what feeds it too.
type stream struct {
	*io.PipeReader
	source io.Closer
}

// Close ends both ends.
func (s *stream) Close() error {
	_ = s.PipeReader.Close()
	return s.source.Close()
}

// freeze delivers nothing, and then breaks the stream.
func freeze(events io.ReadCloser, d time.Duration) io.ReadCloser {
	reader, writer := io.Pipe()
	time.AfterFunc(d, func() { _ = writer.CloseWithError(io.ErrUnexpectedEOF) })
	return &stream{reader, events}
}
