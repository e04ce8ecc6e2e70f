package e2e

import (
	"janus.io/janus/mutate"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/harness"
)

// through puts a line between a new process of Janus and the API server.
func through(line *faultinject.Line) (harness.Option, *faultinject.Process) {
	p := line.Process()
	return harness.WithTransport(p.Wrap), p
}

// faultAt makes a line on which the first request of a kind, such as
// "PATCH configmaps/b", meets a fault.
func faultAt(key string, fault faultinject.Fault) *faultinject.Line {
	return faultinject.NewLine(faultinject.Injection{At: faultinject.At{Key: key}, Fault: fault})
}

// changing returns the requests that have changed the values of an object: those apart
// that gave fields to other owners after a commit.
func changing(line *faultinject.Line, namespace, resource, name string) []faultinject.Call {
	var out []faultinject.Call
	for _, c := range line.Calls() {
		here := c.Namespace == namespace && c.Resource == resource && c.Name == name && c.Subresource == ""
		if here && c.Landed() && c.FieldManager != mutate.DefaultManager {
			out = append(out, c)
		}
	}
	return out
}
