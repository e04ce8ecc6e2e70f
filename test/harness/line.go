package harness

import (
	"net/http"

	"janus.io/janus/mutate"
	"janus.io/janus/test/faultinject"
)

// Through puts a line between a new process of Janus and the API server.
func Through(line *faultinject.Line) (Option, *faultinject.Process) {
	p := line.Process()
	return WithTransport(p.Wrap), p
}

// FaultAt makes a line on which the first request of a kind, such as
// "PATCH configmaps/b", meets a fault.
func FaultAt(key string, fault faultinject.Fault) *faultinject.Line {
	return faultinject.NewLine(faultinject.Injection{At: faultinject.At{Key: key}, Fault: fault})
}

// Changing returns the requests that have changed the values of an object: those apart
// that gave fields to other owners after a commit.
func Changing(line *faultinject.Line, namespace, resource, name string) []faultinject.Call {
	var out []faultinject.Call
	for _, c := range line.Calls() {
		here := c.Namespace == namespace && c.Resource == resource && c.Name == name && c.Subresource == ""
		if here && c.Landed() && c.FieldManager != mutate.DefaultManager {
			out = append(out, c)
		}
	}
	return out
}

// RoundTrip is a transport of one function.
type RoundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
