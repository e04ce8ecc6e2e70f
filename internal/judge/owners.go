package judge

import (
	"sort"
	"strings"
)

// judgeOwners: no field has an owner that the Transaction has put there, and where
// nobody else has written since, every field has the owner that it had, with the
// time.
func (c *trial) judgeOwners(r *run, want standing, last *version, conflicted bool) {
	for _, e := range list(last.Object.Object, "metadata", "managedFields") {
		entry, _ := e.(map[string]any)
		if manager := str(entry, "manager"); strings.HasPrefix(manager, r.family()) {
			c.breach(Atomicity, "%s: %s@%d still has the field manager %s", r, last.Ref, last.Revision, manager)
		}
	}
	if want.touched || want.base == nil || conflicted || want.remade && (rewritten[last.Ref.Resource] || hasOwners(want.base)) {
		return
	}
	had, has := ownership(want.base, want.remade), ownership(last, want.remade)
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

// ownership writes down the entries of managedFields. A status is not put back when
// a kind of Kubernetes is made anew, so it does not count then.
func ownership(v *version, remade bool) []string {
	var out []string
	for _, e := range list(v.Object.Object, "metadata", "managedFields") {
		entry, _ := e.(map[string]any)
		if remade && str(entry, "subresource") == "status" {
			continue
		}
		out = append(out, encoded(entry))
	}
	sort.Strings(out)
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
