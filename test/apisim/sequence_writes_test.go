package apisim_test

import (
	"cmp"
	"fmt"
	"slices"
)

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

// rewrite changes managedFields as a client might that hands fields over.
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
