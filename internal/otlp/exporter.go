package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
	"k8s.io/utils/clock"
)

const (
	// queued is how many traces may wait to be sent.
	queued = 256
	// attempts is how often a trace is sent at most, and pause how long is waited before
	// the second time; it doubles each time.
	attempts = 5
	pause    = time.Second
	// sending bounds an attempt.
	sending = 10 * time.Second
)

// Exporter sends traces to a collector.
type Exporter struct {
	endpoint string
	// shown is the endpoint as others may read it: without the password that it may have.
	shown    string
	resource []Attribute
	clock    clock.Clock
	log      *zap.Logger
	client   *http.Client
	queue    chan []Span
	done     chan struct{}
}

// Endpoint makes out the URL to send to: what has no path gets that of the protocol. The
// error does not repeat the text, which may have a password.
func Endpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("want a URL such as http://collector.monitoring:4318")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u, nil
}

// NewExporter makes an Exporter, which sends until Close. The resource is what sends them.
func NewExporter(endpoint *url.URL, resource []Attribute, clock clock.Clock, log *zap.Logger) *Exporter {
	return &Exporter{
		endpoint: endpoint.String(), shown: endpoint.Redacted(), resource: resource, clock: clock, log: log,
		client: &http.Client{Timeout: sending}, queue: make(chan []Span, queued), done: make(chan struct{}),
	}
}

// Export has the spans of a trace sent. It does not wait.
func (e *Exporter) Export(spans []Span) {
	select {
	case e.queue <- spans:
	default:
		e.log.Warn("a trace was dropped: too many others wait to be sent", zap.String("endpoint", e.shown))
	}
}

// Run sends what is exported. When the context is done, it sends what waits still, each
// once, for as long as the given time at most, and returns.
func (e *Exporter) Run(ctx context.Context, linger time.Duration) {
	defer close(e.done)
	for {
		select {
		case spans := <-e.queue:
			e.send(ctx, spans)
			continue
		case <-ctx.Done():
		}
		break
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), linger)
	defer cancel()
	for {
		select {
		case spans := <-e.queue:
			if _, err := e.post(last, spans); err != nil {
				e.log.Warn("a trace was dropped", zap.Error(err))
			}
			continue
		default:
		}
		return
	}
}

// Done is closed when Run has returned.
func (e *Exporter) Done() <-chan struct{} { return e.done }

// send sends a trace, again if that may help.
func (e *Exporter) send(ctx context.Context, spans []Span) {
	wait := pause
	for attempt := 1; ; attempt++ {
		again, err := e.post(ctx, spans)
		if err == nil {
			return
		}
		if !again || attempt == attempts {
			e.log.Warn("a trace was dropped", zap.Int("attempts", attempt), zap.Error(err))
			return
		}
		select {
		case <-e.clock.After(wait):
			wait *= 2
		case <-ctx.Done():
			e.Export(spans) // Run sends it once more.
			return
		}
	}
}

// post sends a trace once, and tells whether another time may help.
func (e *Exporter) post(ctx context.Context, spans []Span) (again bool, err error) {
	body, err := proto.Marshal(message(e.resource, spans))
	if err != nil {
		return false, fmt.Errorf("encode a trace: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.endpoint, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("send a trace: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := e.client.Do(request)
	if err != nil {
		return true, fmt.Errorf("send a trace: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20)) // So that the connection can be used again.
	switch answer.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	return again, fmt.Errorf("send a trace: %s answers %s", e.shown, answer.Status)
}
