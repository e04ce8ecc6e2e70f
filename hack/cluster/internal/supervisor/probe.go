package supervisor

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// probeTimeout bounds one request, so that a component that hangs is asked
// again rather than waited for.
const probeTimeout = 2 * time.Second

// probe asks once whether something is ready.
type probe = func(context.Context) error

// all succeeds when every probe does, asking them in turn.
func all(probes ...probe) probe {
	return func(ctx context.Context) error {
		for _, p := range probes {
			if err := p(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// probeSocket asks an HTTP server behind a Unix socket.
func probeSocket(socket, path string) probe {
	client := &http.Client{Timeout: probeTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}
	return func(ctx context.Context) error {
		_, err := exchange(ctx, client, http.MethodGet, "http://localhost"+path, nil)
		return err
	}
}

// apiClient speaks to the API server, and to the health endpoints of its
// clients, as the administrator.
type apiClient struct {
	http *http.Client
}

func newAPIClient(config *tls.Config) apiClient {
	return apiClient{http: &http.Client{Timeout: probeTimeout, Transport: &http.Transport{
		TLSClientConfig:   config,
		ForceAttemptHTTP2: true,
	}}}
}

// probe asks for the URL and wants a success.
func (c apiClient) probe(url string) probe {
	return func(ctx context.Context) error {
		_, err := exchange(ctx, c.http, http.MethodGet, url, nil)
		return err
	}
}

// post sends v as JSON.
func (c apiClient) post(ctx context.Context, url string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the body for %s: %w", url, err)
	}
	_, err = exchange(ctx, c.http, http.MethodPost, url, body)
	return err
}

// statusError is an answer other than a success.
type statusError struct {
	method, url string
	code        int
	body        string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s %s: status %d: %s", e.method, e.url, e.code, e.body)
}

// exchange sends one request and returns the body of a successful answer.
func exchange(ctx context.Context, client *http.Client, method, url string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, url, err)
	}
	req.Header.Set("Accept", "application/json")
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	if cerr := resp.Body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, url, err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, &statusError{method: method, url: url, code: resp.StatusCode, body: string(answer)}
	}
	return answer, nil
}

// await repeats the probe until it succeeds. It returns the probe's last error
// if ctx ends first.
func await(ctx context.Context, p probe) error {
	const period = 25 * time.Millisecond
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		err := p(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last answer: %w", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}
