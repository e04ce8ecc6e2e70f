package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"janus.io/janus/test/testcluster"
)

// requests counts what was asked of the API server, by verb and resource.
type requests map[string]int

// requestsIn counts the requests of janusd about a namespace. Watches and what the
// API server asks itself are not among them.
func (s *stage) requestsIn(namespace string) (requests, error) {
	events, err := s.cluster.Audit()
	if err != nil {
		return nil, err
	}
	out := requests{}
	for _, e := range events {
		if e.Verb == "watch" || !strings.HasPrefix(e.UserAgent, "janusd") || e.Namespace != namespace && !strings.Contains(e.RequestURI, "/"+namespace+"/") {
			continue
		}
		out[nameOf(e)]++
	}
	return out, nil
}

func nameOf(e testcluster.AuditEvent) string {
	name := e.Verb + " " + e.Resource
	if e.Subresource != "" {
		name += "/" + e.Subresource
	}
	if e.DryRun {
		name += " (dry run)"
	}
	return name
}

// since is what has come after an earlier count.
func (r requests) since(before requests) requests {
	out := requests{}
	for name, n := range r {
		if n -= before[name]; n > 0 {
			out[name] = n
		}
	}
	return out
}

func (r requests) sum() (n int) {
	for _, one := range r {
		n += one
	}
	return n
}

// writes are those that last. Events, which are sent aside, are not counted.
func (r requests) writes() (n int) {
	for name, one := range r {
		verb, resource, _ := strings.Cut(name, " ")
		if slices.Contains([]string{"create", "update", "patch", "delete"}, verb) && !strings.HasSuffix(name, "(dry run)") &&
			!strings.HasPrefix(resource, "events") && !strings.HasSuffix(resource, "reviews") {
			n += one
		}
	}
	return n
}

func (r requests) String() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		out = append(out, fmt.Sprintf("%d × %s", r[name], name))
	}
	return strings.Join(out, ", ")
}
