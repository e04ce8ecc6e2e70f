package apisim_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/test/apisim"
	"janus.io/janus/test/testcluster"
)

// pair is the model and the real server.
type pair struct {
	t           *testing.T
	real, model *side
	server      *apisim.Server
	namespace   string
	crds        []*apisim.Definition
	requests    int
	stored      []version
	codes       map[int]int
	// mutate is what mutating admission does on the real server.
	mutate func(apisim.Admission) bool
}

func newPair(t *testing.T) *pair {
	t.Helper()
	cluster := testcluster.Shared(t)
	p := &pair{t: t, namespace: testcluster.Namespace(t), crds: append(definitions(t), ownDefinition(t, "sprockets.yaml"), ownDefinition(t, "brackets.yaml")), codes: map[int]int{}}
	p.real = newSide(t, "the real server", cluster.Config())
	return p
}

// version is a version of an object, and what it was when it was stored.
type version struct {
	object *unstructured.Unstructured
	was    string
}

// unchanged reports whether the model has left what it has stored alone.
func (p *pair) unchanged(seed uint64) bool {
	for _, v := range p.stored {
		if !assert.Equal(p.t, v.was, encoded(v.object.Object), "seed %d: a stored object was changed", seed) {
			return false
		}
	}
	return true
}

// begin begins a new sequence on an empty model.
func (p *pair) begin() {
	p.stored = nil
	p.server = apisim.New(apisim.Options{CRDs: p.crds, Namespaces: []string{p.namespace}, Mutate: p.mutate, Observe: func(c apisim.Change) {
		p.stored = append(p.stored, version{c.New, encoded(c.New.Object)})
	}})
	p.model = newSide(p.t, "the model", configFor(p.server, ""))
	p.real.forget()
	p.model.forget()
}

// both sends a request to both and reports whether the answers are the same.
func (p *pair) both(label string, o operation) bool {
	p.t.Helper()
	theirs := p.real.send(p.t, o)
	ours := p.model.send(p.t, o)
	p.requests++
	p.codes[theirs.code]++
	obj, _ := theirs.raw.(object)
	// A PUT may bring a Lease back as one that is being deleted.
	if theirs.code < 300 && (o.method == http.MethodDelete || o.method == http.MethodPut && metadataOf(obj)["deletionTimestamp"] != nil) {
		p.settle(theirs.raw, operation{path: strings.TrimSuffix(o.path, "/status")})
	}
	want, got := shown(theirs), shown(ours)
	if want == got {
		return true
	}
	if len(want)+len(got) > 40000 {
		return assert.Fail(p.t, "long answers differ", "%s: %s\nreal: %s\nmodel: %s", label, o, cut(want), cut(got))
	}
	return assert.Equal(p.t, cut(want), cut(got), "%s: the answers differ to\n%s\n%s\nreal: %s\nmodel: %s", label, o, cut(theirs.sent), cut(encoded(theirs.raw)), cut(encoded(ours.raw)))
}

// settle lets the garbage collectors see to an object that was deleted for them.
func (p *pair) settle(raw any, o operation) {
	p.server.Collect()
	obj, _ := raw.(object)
	require.Eventually(p.t, func() bool {
		finalizers, _ := metadataOf(obj)["finalizers"].([]any)
		if !slices.Contains(finalizers, any("orphan")) && !slices.Contains(finalizers, any("foregroundDeletion")) {
			return true
		}
		resp, _ := p.real.open(p.t.Context(), p.t, operation{method: http.MethodGet, path: o.path})
		defer func() { _ = resp.Body.Close() }()
		obj = object{}
		return json.NewDecoder(resp.Body).Decode(&obj) == nil && resp.StatusCode == http.StatusNotFound
	}, 20*time.Second, 2*time.Millisecond, "the garbage collector does not come to %s", o.path)
}

func encoded(x any) string {
	data, err := json.Marshal(x)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func shown(a answer) string {
	data, err := json.MarshalIndent(a.same, "", " ")
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d\n%s", a.code, data)
}

func TestTheModelAnswersAsTheRealServerDoes(t *testing.T) {
	newPair(t).sequences(*sequences)
}

// What is written by one version of a kind and read by another is converted, and owned, as
// on the real server.
func TestTheModelConvertsAsTheRealServerDoes(t *testing.T) {
	newPair(t).sequences(max(3, *sequences/3), brackets...)
}

// sequences compares the answers to so many sequences of requests, about these kinds if
// there are any.
func (p *pair) sequences(count int, about ...subject) {
	began := time.Now()
	wrong := 0
	for n := range count {
		seed := *firstSeed + uint64(n)
		if !p.sequence(seed, about) {
			if wrong++; wrong == *tolerance {
				break
			}
		}
	}
	p.t.Logf("%d sequences from seed %d, %d requests, %s; answers by code: %v", count, *firstSeed, p.requests, time.Since(began).Round(time.Millisecond), p.codes)
	require.Zero(p.t, wrong)
}

// sequence runs the requests that come of a seed until an answer differs.
func (p *pair) sequence(seed uint64, about []subject) bool {
	p.begin()
	q := newSequence(seed, p.namespace)
	if len(about) > 0 {
		q.subjects = about
	}
	watches := p.watch(q)
	p.real.forget()
	p.model.forget()
	for n := range *length {
		if !p.both(fmt.Sprintf("seed %d, request %d", seed, n), q.next()) {
			return false
		}
	}
	for _, w := range watches {
		if !w.same(p) {
			return false
		}
	}
	return p.unchanged(seed)
}

// cut leaves out what nobody would read.
func cut(text string) string {
	const most = 20000
	if len(text) > most {
		return text[:most/2] + fmt.Sprintf(" … %d bytes … ", len(text)-most) + text[len(text)-most/2:]
	}
	return text
}
