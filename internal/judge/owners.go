package judge

import (
	"maps"
	"sort"
	"strings"
)

// judgeOwners: no field has an owner that the Transaction has put there, and every
// field whose owners nobody else has changed since has those that it had, with the
// time. Of an object that somebody else has deleted or made nobody can tell.
func (c *trial) judgeOwners(r *run, want standing, last *version, conflicted bool) {
	for _, e := range list(last.Object.Object, "metadata", "managedFields") {
		entry, _ := e.(map[string]any)
		if manager := str(entry, "manager"); strings.HasPrefix(manager, r.family()) {
			c.breach(Atomicity, "%s: %s@%d still has the field manager %s", r, last.Ref, last.Revision, manager)
		}
	}
	if want.replaced || want.base == nil || conflicted || want.remade && (rewritten[last.Ref.Resource] || hasOwners(want.base)) {
		return
	}
	had, has := want.meddled.ownership(want.base, want.remade), want.meddled.ownership(last, want.remade)
	for _, e := range missingFrom(had, has) {
		c.breach(Atomicity, "%s: %s@%d lacks an entry of managedFields that it had @%d: %s", r, last.Ref, last.Revision, want.base.Revision, e)
	}
	for _, e := range missingFrom(has, had) {
		c.breach(Atomicity, "%s: %s@%d has an entry of managedFields that it had not @%d: %s", r, last.Ref, last.Revision, want.base.Revision, e)
	}
}

func hasOwners(v *version) bool {
	return len(list(v.Object.Object, "metadata", "ownerReferences")) > 0
}

// meddling is what others have done to who owns the fields of an object.
type meddling struct {
	// entries of managedFields have been written, as entryOf names them: their time is
	// that of whoever wrote them.
	entries map[string]bool
	// fields have got an owner, or lost one: they stay with whoever claimed them, or are
	// gone.
	fields map[string]bool
}

// and adds what a version has changed. What was there may be kept elsewhere, so it stays
// as it is.
func (m meddling) and(v *version) meddling {
	out := meddling{maps.Clone(m.entries), maps.Clone(m.fields)}
	if out.entries == nil {
		out = meddling{map[string]bool{}, map[string]bool{}}
	}
	was, is := entriesOf(v.before), entriesOf(v)
	compare := func(one, other map[string]map[string]any) {
		for name, entry := range one {
			if same(entry, other[name]) {
				continue
			}
			out.entries[name] = true
			others := fieldsOf(other[name])
			for field := range fieldsOf(entry) {
				out.fields[field] = out.fields[field] || !others[field]
			}
		}
	}
	compare(was, is)
	compare(is, was)
	return out
}

// ownership writes down the entries of managedFields, without what others have claimed.
// A status is not put back when a kind of Kubernetes is made anew, so it does not count
// then.
func (m meddling) ownership(v *version, remade bool) []string {
	var out []string
	for _, e := range list(v.Object.Object, "metadata", "managedFields") {
		entry, _ := e.(map[string]any)
		if remade && str(entry, "subresource") == "status" {
			continue
		}
		fields, _ := entry["fieldsV1"].(map[string]any)
		left := m.without("", fields)
		if len(left) == 0 && len(fields) > 0 {
			continue
		}
		entry = maps.Clone(entry)
		entry["fieldsV1"] = left
		if m.entries[entryOf(entry)] {
			delete(entry, "time")
		}
		out = append(out, encoded(entry))
	}
	sort.Strings(out)
	return out
}

// without leaves out of a set of fields those that others have claimed.
func (m meddling) without(path string, fields map[string]any) map[string]any {
	out := map[string]any{}
	for name, inner := range fields {
		at := path + "/" + name
		parts, _ := inner.(map[string]any)
		if left := m.without(at, parts); len(left) > 0 || len(parts) == 0 && !m.fields[at] {
			out[name] = left
		}
	}
	return out
}

// entriesOf gives the entries of managedFields by their names.
func entriesOf(v *version) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, e := range list(v.Object.Object, "metadata", "managedFields") {
		entry, _ := e.(map[string]any)
		out[entryOf(entry)] = entry
	}
	return out
}

// entryOf names an entry of managedFields by what tells it from the others of an object.
func entryOf(entry map[string]any) string {
	return strings.Join([]string{str(entry, "manager"), str(entry, "operation"), str(entry, "apiVersion"), str(entry, "subresource")}, " ")
}

// fieldsOf lists the fields of an entry of managedFields.
func fieldsOf(entry map[string]any) map[string]bool {
	out := map[string]bool{}
	var visit func(path string, fields map[string]any)
	visit = func(path string, fields map[string]any) {
		for name, inner := range fields {
			if parts, _ := inner.(map[string]any); len(parts) > 0 {
				visit(path+"/"+name, parts)
			} else {
				out[path+"/"+name] = true
			}
		}
	}
	fields, _ := entry["fieldsV1"].(map[string]any)
	visit("", fields)
	return out
}

// missingFrom lists what is in one sorted list and not in another.
func missingFrom(all, there []string) []string {
	var out []string
	for _, s := range all {
		if i := sort.SearchStrings(there, s); i == len(there) || there[i] != s {
			out = append(out, s)
		}
	}
	return out
}
