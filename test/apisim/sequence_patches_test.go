package apisim_test

import (
	"fmt"
	"strings"
)

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
