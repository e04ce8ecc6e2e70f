package apisim_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
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

func (q *sequence) create(s subject, path, name string) func(*side) any {
	obj := q.compose(s, name)
	identify := q.identity(path, 12)
	again := q.in(8)
	return func(s *side) any {
		out := object{}
		for k, v := range obj {
			out[k] = v
		}
		if was := s.version(path, 0); again && was != nil {
			// What was deleted is made again from what was seen of it.
			out = was
			delete(metadataOf(out), "resourceVersion")
			return out
		}
		m := object{}
		for k, v := range metadataOf(obj) {
			m[k] = v
		}
		identify(s, m)
		out["metadata"] = m
		return out
	}
}

func metadataOf(obj object) object {
	m, _ := obj["metadata"].(object)
	if m == nil {
		m = object{}
	}
	return m
}

func (q *sequence) replace(s subject, path, name string) func(*side) any {
	obj := q.compose(s, name)
	identify := q.identity(path, 2)
	edit := q.in(2)
	back := 0
	if q.in(6) {
		back = q.IntN(3)
	}
	fields := q.IntN(6)
	rewrite := q.rewrite()
	return func(s *side) any {
		was := s.version(path, back)
		if was == nil || !edit {
			out := object{}
			for k, v := range obj {
				out[k] = v
			}
			m := object{}
			for k, v := range metadataOf(obj) {
				m[k] = v
			}
			identify(s, m)
			out["metadata"] = m
			return out
		}
		for k, v := range obj {
			if k != "metadata" && k != "kind" && k != "apiVersion" {
				was[k] = v
			}
		}
		m := metadataOf(was)
		for _, k := range []string{"labels", "annotations", "finalizers"} {
			if v, ok := metadataOf(obj)[k]; ok {
				m[k] = v
			}
		}
		switch fields {
		case 0:
			delete(m, "managedFields")
		case 1:
			rewrite(m)
		case 2:
			delete(m, "resourceVersion")
		case 3:
			delete(m, "uid")
		}
		return was
	}
}

// rewrite changes managedFields as somebody might who hands fields over.
func (q *sequence) rewrite() func(object) {
	what, n, drop := q.IntN(8), q.IntN(4), q.IntN(4)
	manager := q.manager()
	return func(m object) {
		list, _ := m["managedFields"].([]any)
		// By name and not by time: the two servers' seconds end at different requests.
		slices.SortStableFunc(list, func(a, b any) int { return cmp.Compare(named(a), named(b)) })
		var entry object
		if n < len(list) {
			entry, _ = list[n].(object)
		}
		switch {
		case what == 0:
			m["managedFields"] = []any{}
		case what == 1:
			m["managedFields"] = []any{object{}}
		case what == 2 && drop < len(list):
			m["managedFields"] = append(append([]any{}, list[:drop]...), list[drop+1:]...)
		case entry == nil:
		case what == 3:
			entry["manager"] = manager
		case what == 4:
			entry["time"] = "2020-01-01T00:00:00Z"
			if drop == 0 {
				delete(entry, "time")
			}
		case what == 5:
			entry["fieldsV1"] = object{"f:metadata": object{"f:labels": object{"f:app": object{}}}, "f:absent": object{}}
		case what == 6:
			entry["apiVersion"] = []any{"v9", "example.com/v9", "", "v1"}[drop]
		case what == 7:
			entry["operation"] = []any{"Apply", "Update", "Other", ""}[drop]
		}
	}
}

func named(x any) string {
	e, _ := x.(object)
	return fmt.Sprint(e["operation"], e["manager"], e["subresource"])
}

// owners is a merge patch of managedFields.
func (q *sequence) owners(path string) func(*side) any {
	rewrite := q.rewrite()
	identify := q.identity(path, 2)
	return func(s *side) any {
		m := object{"managedFields": metadataOf(s.version(path, 0))["managedFields"]}
		rewrite(m)
		identify(s, m)
		return object{"metadata": m}
	}
}

func (q *sequence) merge(s subject, path, name string) func(*side) any {
	obj := q.compose(s, name)
	identify := q.identity(path, 3)
	m := metadataOf(obj)
	if !q.in(12) {
		delete(obj, "apiVersion")
		delete(obj, "kind")
		delete(m, "name")
	}
	if q.in(12) {
		return func(*side) any { return q.broken() }
	}
	return func(s *side) any {
		out := object{}
		for k, v := range m {
			out[k] = v
		}
		identify(s, out)
		obj["metadata"] = out
		return obj
	}
}

// broken is no JSON object.
func (q *sequence) broken() any { return `{"data":` }

func (q *sequence) json(s subject, path string) func(*side) any {
	type step struct {
		op, path string
		value    any
		version  int
	}
	var steps []step
	fields := s.fields(q.maker)
	for range 1 + q.IntN(3) {
		at := s.parts[q.IntN(len(s.parts))]
		at = q.one(at, at, at, "/metadata/labels", "/metadata/annotations/note", "/metadata/finalizers", "/metadata/finalizers/0").(string)
		op := q.one("replace", "add", "remove", "test", "add", "replace", "copy", "nonsense").(string)
		value := q.one("x", "1", int64(3), object{"app": "x", "seq": fmt.Sprint(q.seed)}, []any{"example.com/wait"}, nil, []any{})
		if v := pointed(fields, at); v != nil {
			value = v
		}
		steps = append(steps, step{op, at, value, q.IntN(10)})
	}
	check := q.in(3)
	right := q.in(2)
	return func(s *side) any {
		out := []any{}
		if check {
			version := metadataOf(s.version(path, 0))["resourceVersion"]
			if !right {
				version = "1"
			}
			out = append(out, object{"op": "test", "path": "/metadata/resourceVersion", "value": version})
		}
		for _, step := range steps {
			o := object{"op": step.op, "path": step.path, "value": step.value}
			if step.op == "remove" {
				delete(o, "value")
			}
			if step.op == "copy" {
				o["from"] = "/metadata/labels"
			}
			out = append(out, o)
		}
		return out
	}
}

func pointed(obj object, pointer string) any {
	var at any = obj
	for _, name := range strings.Split(pointer[1:], "/") {
		m, ok := at.(object)
		if !ok {
			return nil
		}
		at = m[name]
	}
	return at
}

func (q *sequence) apply(s subject, path, name string) func(*side) any {
	obj := q.compose(s, name)
	identify := q.identity(path, 3)
	m := metadataOf(obj)
	for _, k := range []string{"generation", "generateName", "creationTimestamp", "deletionTimestamp", "selfLink"} {
		if !q.in(10) {
			delete(m, k)
		}
	}
	q.some(m, "managedFields", 25, []any{}, []any{object{"manager": "x", "operation": "Update"}}, nil)
	return func(s *side) any {
		out := object{}
		for k, v := range m {
			out[k] = v
		}
		identify(s, out)
		obj["metadata"] = out
		return obj
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
