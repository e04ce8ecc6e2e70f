package target

import "net/http"

// singleAttempt makes client-go send a write once and no more. client-go repeats any
// request up to ten times when an answer of 429 or 5xx carries Retry-After; a repeated
// write whose first attempt took effect looks like another client's. Without the header
// client-go returns the answer to the caller, who looks at the target before it decides.
// Reads keep the header.
type singleAttempt struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *singleAttempt) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err == nil && req.Method != http.MethodGet {
		resp.Header.Del("Retry-After")
	}
	return resp, err
}

// WrappedRoundTripper lets client-go find the transport below, for instance to
// cancel a request that takes too long.
func (t *singleAttempt) WrappedRoundTripper() http.RoundTripper { return t.next }
