package apisim_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// owned is an object of a family: some own others.
type owned struct {
	subject subject
	name    string
	path    string
	owners  []int
	block   bool
	hold    bool
	bogus   bool
	// adopts are those before it that come to be owned by it later.
	adopts []int
}

// family makes up objects, each of which may be owned by those before it.
func (q *sequence) family() []owned {
	var out []owned
	for i := range 3 + q.IntN(4) {
		s := subjects[q.one(0, 2, 4).(int)]
		o := owned{subject: s, name: fmt.Sprintf("%c-%d", 'a'+i, q.seed), block: q.in(2), hold: q.in(6), bogus: q.in(8)}
		o.path = s.collection(q.namespace) + "/" + o.name
		for n := range i {
			if q.in(3) && !related(out, o.owners, n) {
				o.owners = append(o.owners, n)
			}
		}
		out = append(out, o)
	}
	q.adoptions(out)
	return out
}

// adoptions lets some objects adopt one that was there before, and belongs to nobody as yet,
// as controllers do.
func (q *sequence) adoptions(all []owned) {
	taken := map[int]bool{}
	for i := range all {
		n := q.IntN(i + 1)
		if n == i || taken[n] || len(all[n].owners) > 0 || all[n].bogus || owns(all, n) {
			continue
		}
		taken[n] = true
		all[i].adopts = append(all[i].adopts, n)
	}
}

func owns(all []owned, n int) bool {
	for i := range all {
		if belongs(all, i, n) {
			return true
		}
	}
	return false
}

// adoption is the patch by which a controller takes an object over.
func (o owned) adoption(orphan owned) operation {
	return operation{method: http.MethodPatch, path: orphan.path, contentType: asMerge, query: "fieldManager=kube-controller-manager", agent: "tester", body: func(s *side) any {
		return object{"metadata": object{
			"uid": metadataOf(s.version(orphan.path, 0))["uid"],
			"ownerReferences": []any{object{
				"apiVersion": o.subject.apiVersion, "kind": o.subject.kind, "name": o.name,
				"uid": metadataOf(s.version(o.path, 0))["uid"], "controller": true, "blockOwnerDeletion": o.block,
			}},
		}}
	}}
}

// related reports whether one of the owners belongs to another one, or the other to
// it. What the real garbage collector does with the object of such owners depends on
// which of them it comes to first.
func related(all []owned, owners []int, n int) bool {
	for _, other := range owners {
		if belongs(all, n, other) || belongs(all, other, n) {
			return true
		}
	}
	return false
}

func belongs(all []owned, n, to int) bool {
	for _, owner := range all[n].owners {
		if owner == to || belongs(all, owner, to) {
			return true
		}
	}
	return false
}

func (o owned) create(all []owned) operation {
	return operation{method: http.MethodPost, path: o.path[:len(o.path)-len(o.name)-1], contentType: asJSON, agent: "tester", body: func(s *side) any {
		var references []any
		for _, n := range o.owners {
			owner := all[n]
			references = append(references, object{
				"apiVersion": owner.subject.apiVersion, "kind": owner.subject.kind, "name": owner.name,
				"uid": metadataOf(s.version(owner.path, 0))["uid"], "blockOwnerDeletion": o.block,
			})
		}
		if o.bogus && len(o.owners) > 0 {
			references = append(references, object{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "11111111-2222-4333-8444-555555555555"})
		}
		m := object{"name": o.name, "ownerReferences": references}
		if o.hold {
			m["finalizers"] = []any{"example.com/wait"}
		}
		return object{"apiVersion": o.subject.apiVersion, "kind": o.subject.kind, "metadata": m, "spec": object{}}
	}}
}

// state is what remains of a family, as far as it does not depend on how many writes
// the garbage collector took.
func (s *side) state(t *testing.T, all []owned) string {
	t.Helper()
	var out []any
	for _, o := range all {
		a := s.send(t, operation{method: http.MethodGet, path: o.path})
		if a.code != http.StatusOK {
			out = append(out, a.code)
			continue
		}
		obj := a.same.(object)
		delete(metadataOf(obj), "resourceVersion")
		out = append(out, obj)
	}
	data, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func TestTheModelCollectsAsTheRealControllersDo(t *testing.T) {
	p := newPair(t)
	began := time.Now()
	count := max(3, *sequences/8)
	for n := range count {
		if !p.collects(*firstSeed + uint64(n)) {
			break
		}
	}
	t.Logf("%d families from seed %d, %d requests, %s", count, *firstSeed, p.requests, time.Since(began).Round(time.Millisecond))
}

func (p *pair) collects(seed uint64) bool {
	p.begin()
	q := &sequence{maker: &maker{pseudorandom(seed, 2), seed}, namespace: p.namespace}
	all := q.family()
	for _, o := range all {
		if !p.both(fmt.Sprintf("family %d", seed), o.create(all)) {
			return false
		}
	}
	for _, o := range all {
		for _, n := range o.adopts {
			if !p.both(fmt.Sprintf("family %d, adoption", seed), o.adoption(all[n])) {
				return false
			}
		}
	}
	if !p.alike(seed, all, "after the creation") {
		return false
	}
	for range 1 + q.IntN(3) {
		o := all[q.IntN(len(all))]
		options := object{"propagationPolicy": q.one("Background", "Foreground", "Orphan")}
		remove := operation{method: http.MethodDelete, path: o.path, contentType: asJSON, agent: "tester", body: func(*side) any { return options }}
		theirs, ours := p.real.send(p.t, remove), p.model.send(p.t, remove)
		if !assert.Equal(p.t, theirs.code, ours.code, "family %d: %s", seed, o.path) {
			return false
		}
		if !p.alike(seed, all, fmt.Sprintf("after the deletion of %s (%v)", o.name, options["propagationPolicy"])) {
			return false
		}
	}
	return true
}

// alike waits until the controllers have come to what the model says.
func (p *pair) alike(seed uint64, all []owned, when string) bool {
	p.t.Helper()
	p.server.Collect()
	want := p.model.state(p.t, all)
	var is string
	for began := time.Now(); time.Since(began) < 15*time.Second; time.Sleep(20 * time.Millisecond) {
		if is = p.real.state(p.t, all); is == want {
			return true
		}
	}
	return assert.Equal(p.t, want, is, "family %d, %s: %s", seed, when, described(all))
}

func described(all []owned) string {
	out := ""
	for _, o := range all {
		out += fmt.Sprintf("\n%s %s owners=%v block=%t hold=%t bogus=%t adopts=%v", o.subject.kind, o.name, o.owners, o.block, o.hold, o.bogus, o.adopts)
	}
	return out
}
