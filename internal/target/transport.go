package target

import "net/http"

// Transport wraps the transport of every client of Janus: a write is sent once, and a
// refusal is believed only of an API server that is ready.
func Transport(next http.RoundTripper) http.RoundTripper {
	return &singleAttempt{&onlyReady{next}}
}
