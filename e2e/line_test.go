package e2e

import (
	"janus.io/janus/internal/chaos"
	"janus.io/janus/internal/janustest"
	"janus.io/janus/mutate"
)

// through puts a line between a new process of Janus and the API server.
func through(line *chaos.Line) (janustest.Option, *chaos.Process) {
	p := line.Process()
	return janustest.WithTransport(p.Wrap), p
}

// faultAt makes a line on which the first request of a kind, such as
// "PATCH configmaps/b", meets a fault.
func faultAt(key string, fault chaos.Fault) *chaos.Line {
	return chaos.NewLine(chaos.Injection{At: chaos.At{Key: key}, Fault: fault})
}

// changing gives the requests that have changed the values of an object: those apart
// that gave fields to other owners after a commit.
func changing(line *chaos.Line, namespace, resource, name string) []chaos.Call {
	var out []chaos.Call
	for _, c := range line.Calls() {
		here := c.Namespace == namespace && c.Resource == resource && c.Name == name && c.Subresource == ""
		if here && c.Landed() && c.FieldManager != mutate.Heir {
			out = append(out, c)
		}
	}
	return out
}
