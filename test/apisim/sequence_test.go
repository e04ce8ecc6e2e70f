package apisim_test

import (
	"fmt"
	"net/http"
	"net/url"
)

const (
	asJSON  = "application/json"
	asMerge = "application/merge-patch+json"
	asPatch = "application/json-patch+json"
	asApply = "application/apply-patch+yaml"
)

// sequence makes up requests about a few objects.
type sequence struct {
	*maker
	namespace string
	// subjects are the kinds that the sequence is about: a few, so that much befalls
	// each object.
	subjects []subject
}

func newSequence(seed uint64, namespace string) *sequence {
	q := &sequence{maker: &maker{pseudorandom(seed, 1), seed}, namespace: namespace}
	var bag []subject
	for _, s := range subjects {
		for range s.weight {
			bag = append(bag, s)
		}
	}
	for range 3 {
		q.subjects = append(q.subjects, bag[q.IntN(len(bag))])
	}
	return q
}

func (q *sequence) subject() subject { return q.subjects[q.IntN(len(q.subjects))] }

// name is that of one of three objects of each kind.
func (q *sequence) name() string { return fmt.Sprintf("%c-%d", 'a'+q.IntN(2), q.seed) }

func (q *sequence) manager() string { return q.one("m1", "m2", "m3", "janus-1-0", "kubectl").(string) }

// next makes up a request.
func (q *sequence) next() operation {
	s := q.subject()
	o := operation{agent: q.one("tester/1.0 (linux)", "other", "m1/x").(string)}
	name := q.name()
	path := s.collection(q.namespace)
	query := url.Values{}
	if !q.in(4) {
		query.Set("fieldManager", q.manager())
	}
	if q.in(8) {
		query.Set("dryRun", "All")
	}
	switch q.IntN(5) {
	case 0:
		query.Set("fieldValidation", "Strict")
	case 1:
		query.Set("fieldValidation", "Ignore")
	}
	one := path + "/" + name
	switch n := q.IntN(100); {
	case n < 26:
		o.method, o.path, o.contentType, o.body = http.MethodPost, path, asJSON, q.create(s, one, name)
	case n < 40:
		o.method, o.path, o.contentType, o.body = http.MethodPut, q.main(s, one), asJSON, q.replace(s, one, name)
	case n < 51:
		o.method, o.path, o.contentType, o.body = http.MethodPatch, q.main(s, one), asMerge, q.merge(s, one, name)
	case n < 58:
		o.method, o.path, o.contentType, o.body = http.MethodPatch, q.main(s, one), asPatch, q.json(s, one)
	case n < 77:
		o.method, o.path, o.contentType, o.body = http.MethodPatch, q.main(s, one), asApply, q.apply(s, one, name)
		if q.in(2) {
			query.Set("force", "true")
		}
	case n < 83:
		o.method, o.path, o.contentType, o.body = http.MethodPatch, one, asMerge, q.owners(one)
	case n < 90:
		query = url.Values{}
		o.method, o.path, o.contentType, o.body = http.MethodDelete, one, asJSON, q.delete(one)
	case n < 91:
		query = url.Values{"labelSelector": {fmt.Sprintf("app=%s,seq=%d", q.one("x", "y"), q.seed)}}
		o.method, o.path = http.MethodDelete, path
	case n < 97:
		query = url.Values{}
		o.method, o.path = http.MethodGet, one
		o.accept = q.one("", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").(string)
	default:
		query = url.Values{"labelSelector": {q.one("app=x", "app", "app!=x", "app in (x,y)").(string) + fmt.Sprintf(",seq=%d", q.seed)}}
		if q.in(2) {
			query = url.Values{"fieldSelector": {"metadata.name=" + name}}
		}
		o.method, o.path = http.MethodGet, path
	}
	o.query = query.Encode()
	return o
}

// main is the path of an object or, at times, of its status.
func (q *sequence) main(s subject, one string) string {
	if s.status && q.in(4) {
		return one + "/status"
	}
	return one
}

// compose makes up an object.
func (q *sequence) compose(s subject, name string) object {
	obj := s.fields(q.maker)
	obj["apiVersion"], obj["kind"] = s.apiVersion, s.kind
	m := q.metadata(object{"name": name})
	q.mark(m)
	obj["metadata"] = m
	q.some(m, "name", 60, fmt.Sprintf("other-%d", q.seed), "Not_Valid", "")
	q.some(m, "namespace", 8, q.namespace, q.namespace, "elsewhere")
	if s.kind != "Transaction" {
		// Its rules in CEL would be checked all the same.
		q.some(obj, "kind", 80, "Other", "")
	}
	q.some(obj, "apiVersion", 80, "v2", "")
	return obj
}

// mark labels an object as one of this sequence, if it has labels.
func (q *sequence) mark(m object) {
	if labels, ok := m["labels"].(object); ok && len(labels) > 0 {
		labels["seq"] = fmt.Sprint(q.seed)
	}
}

// identity sets a uid and a resourceVersion, right, old or wrong ones.
func (q *sequence) identity(path string, odds int) func(*side, object) {
	withUID, withVersion := q.in(odds), q.in(odds)
	uid, version := q.IntN(12), q.IntN(12)
	back := q.IntN(3) + 1
	return func(s *side, m object) {
		last, _ := s.version(path, 0)["metadata"].(object)
		older, _ := s.version(path, back)["metadata"].(object)
		if withUID {
			m["uid"] = pick(uid, last["uid"], s.uids.at(back, ""), "11111111-2222-4333-8444-555555555555", "")
		}
		if withVersion {
			m["resourceVersion"] = pick(version, last["resourceVersion"], older["resourceVersion"], "1", "0")
			if version == 11 {
				m["resourceVersion"] = "x"
			}
		}
		for _, k := range []string{"uid", "resourceVersion"} {
			if m[k] == nil {
				delete(m, k)
			}
		}
	}
}

// pick prefers what is right.
func pick(n int, right, old any, wrong, empty string) any {
	switch {
	case n < 6:
		return right
	case n < 9:
		return old
	case n < 10:
		return wrong
	default:
		return empty
	}
}

func (q *sequence) delete(path string) func(*side) any {
	options := object{"apiVersion": "v1", "kind": "DeleteOptions"}
	q.some(options, "propagationPolicy", 3, "Background", "Foreground", "Orphan")
	q.some(options, "propagationPolicy", 30, "Nonsense")
	q.some(options, "orphanDependents", 20, true, false)
	q.some(options, "dryRun", 8, []any{"All"})
	q.some(options, "gracePeriodSeconds", 12, int64(0), int64(30), int64(-1))
	with := q.in(2)
	identify := q.identity(path, 2)
	return func(s *side) any {
		if with {
			p := object{}
			identify(s, p)
			options["preconditions"] = p
		}
		return options
	}
}
