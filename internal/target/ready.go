package target

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"janus.io/janus/internal/errclass"
)

// readyPath is where an API server tells whether it is ready. Everybody who is
// authenticated may ask, before it knows of any role.
const readyPath = "/readyz"

// onlyReady returns a refusal only if the API server was ready before it was asked. One
// that has just started refuses everybody everything, until it has read the roles and
// bindings: what it forbids then it allows a second later, and a Transaction would have
// been given up for it. Its refusal becomes a 429 here, by which anyone who asked tries again:
// nothing was done. One that is ready may have become so since it refused, and is asked
// the same once more.
type onlyReady struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *onlyReady) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusForbidden {
		return resp, err
	}
	if !t.ready(req) {
		return notReady(resp)
	}
	again, err := repeated(req)
	if err != nil {
		return notReady(resp)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	resp, err = t.next.RoundTrip(again)
	// It may have been started once more, or this may be another one, that has just started.
	if err == nil && resp.StatusCode == http.StatusForbidden && !t.ready(req) {
		return notReady(resp)
	}
	return resp, err
}

// errOnce is of a request whose body cannot be read again.
var errOnce = errors.New("the body of the request is gone")

// repeated is the same request again.
func repeated(req *http.Request) (*http.Request, error) {
	again := req.Clone(req.Context())
	if req.Body == nil || req.Body == http.NoBody {
		return again, nil
	}
	if req.GetBody == nil {
		return nil, errOnce
	}
	var err error
	again.Body, err = req.GetBody()
	return again, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *onlyReady) WrappedRoundTripper() http.RoundTripper { return t.next }

// ready asks over the same transport, thus most likely the same API server. Who gets
// no word of it, for instance from a proxy that keeps the path to itself, takes it to
// be ready.
func (t *onlyReady) ready(refused *http.Request) bool {
	where := url.URL{Scheme: refused.URL.Scheme, Host: refused.URL.Host, Path: readyPath}
	req, err := http.NewRequestWithContext(refused.Context(), http.MethodGet, where.String(), http.NoBody)
	if err != nil {
		return true
	}
	for _, name := range []string{"Authorization", "User-Agent"} {
		if value := refused.Header.Get(name); value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode < http.StatusInternalServerError
}

// notReady makes of a refusal an answer that asks for another attempt.
func notReady(refusal *http.Response) (*http.Response, error) {
	said, err := io.ReadAll(refusal.Body)
	_ = refusal.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read a refusal: %w", err)
	}
	why := refusal.Status
	if decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(said, nil, nil); err == nil {
		if status, ok := decoded.(*metav1.Status); ok {
			why = status.Message
		}
	}
	const seconds = 1
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Message: "the API server is not ready yet, and refuses what it may allow later: " + why,
		Details: &metav1.StatusDetails{RetryAfterSeconds: seconds},
	})
	if err != nil {
		return nil, fmt.Errorf("report that the API server is not ready: %w", err)
	}
	out := *refusal
	out.StatusCode, out.Status = http.StatusTooManyRequests, fmt.Sprintf("%d %s", http.StatusTooManyRequests, http.StatusText(http.StatusTooManyRequests))
	out.Header = http.Header{"Content-Type": {"application/json"}, "Retry-After": {fmt.Sprint(seconds)}}
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return &out, nil
}

// Ready returns an error if the API server says that it is not ready. It is asked when a
// review of rights was answered with no.
func (i *Identity) Ready(ctx context.Context) error {
	var code int
	result := i.core.RESTClient().Get().AbsPath(readyPath).MaxRetries(0).Do(ctx).StatusCode(&code)
	if code != 0 && code < http.StatusInternalServerError {
		return nil
	}
	return errclass.New(errclass.Retryable, errclass.ServerUnavailable, "ask for the rights of", "ServiceAccount "+i.Account.String(),
		"the API server is not ready, and denies what it may allow later: %v", result.Error())
}
