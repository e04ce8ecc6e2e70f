package oracle

import (
	"encoding/json"
	"fmt"
	"maps"
	"sort"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// judgeOwners: no field has an owner that the Transaction has put there, and every
// field whose owners nobody else has changed since has those that it had, with the
// time. Of an object that another client has deleted or made nobody can tell.
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
	// that of anyone who wrote them.
	entries map[string]bool
	// fields have got an owner, or lost one: they stay with anyone who claimed them, or are
	// gone.
	fields *fieldpath.Set
}

// and adds what a version has changed. What was there may be kept elsewhere, so it stays
// as it is.
func (m meddling) and(v *version) meddling {
	out := meddling{maps.Clone(m.entries), m.fields}
	if out.entries == nil {
		out = meddling{map[string]bool{}, fieldpath.NewSet()}
	}
	was, is := entriesOf(v.before), entriesOf(v)
	compare := func(one, other map[string]map[string]any) {
		for name, entry := range one {
			if same(entry, other[name]) {
				continue
			}
			out.entries[name] = true
			out.fields = out.fields.Union(fieldsOf(entry).Difference(fieldsOf(other[name])))
		}
	}
	compare(was, is)
	compare(is, was)
	return out
}

// ownership writes down the entries of managedFields, without what others have claimed.
// A status is not put back when a kind of Kubernetes is re-created, so it does not
// count then.
func (m meddling) ownership(v *version, remade bool) []string {
	var out []string
	for _, e := range list(v.Object.Object, "metadata", "managedFields") {
		entry, _ := e.(map[string]any)
		if remade && str(entry, "subresource") == "status" {
			continue
		}
		fields := fieldsOf(entry)
		left := fields
		if m.fields != nil {
			left = fields.Difference(m.fields)
		}
		if left.Empty() && !fields.Empty() {
			continue
		}
		entry = maps.Clone(entry)
		entry["fieldsV1"] = written(left)
		if m.entries[entryOf(entry)] {
			delete(entry, "time")
		}
		out = append(out, encoded(entry))
	}
	sort.Strings(out)
	return out
}

// entriesOf returns the entries of managedFields by their names.
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

// fieldsOf reads the fields of an entry of managedFields. They can be written in more than
// one way: an object whose owner has none of its parts as {} or as {".":{}}.
func fieldsOf(entry map[string]any) *fieldpath.Set {
	out := fieldpath.NewSet()
	fields, ok := entry["fieldsV1"]
	if !ok {
		return out
	}
	if err := out.FromJSON(strings.NewReader(encoded(fields))); err != nil {
		panic(fmt.Sprintf("the API server has let managedFields pass that cannot be read: %v: %s", err, encoded(entry)))
	}
	return out
}

// written returns fields in the one way in which they are compared.
func written(fields *fieldpath.Set) json.RawMessage {
	text, err := fields.ToJSON()
	if err != nil {
		panic(fmt.Sprintf("write what was read from JSON: %v", err))
	}
	return text
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
