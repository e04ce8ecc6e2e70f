package target

import "net/http"

// SingleAttempt wraps a transport so that client-go sends a write once and no
// more. client-go repeats any request up to ten times when an answer of 429 or
// 5xx carries Retry-After; a repeated write whose first attempt took effect looks
// like somebody else's. Without the header client-go gives the answer to the
// caller, who looks at the target before it decides. Reads keep the header.
func SingleAttempt(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil && req.Method != http.MethodGet {
			resp.Header.Del("Retry-After")
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
