package oracle

import (
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"

	api "janus.io/janus/api/v1alpha1"
)

// judgeGivenUp: with the hand-over, the managers that a release names own none of the fields any
// more which the Transaction has until then, and nobody has come to own them but who is named. What
// was to be released it returns: that may be left without an owner.
func (c *trial) judgeGivenUp(r *run, w *write, base *version) *fieldpath.Set {
	all := fieldpath.NewSet()
	for i, change := range r.Spec.Changes {
		if i >= len(r.Items) || r.Items[i] != w.ref || change.Release == nil || len(r.made(i, do)) == 0 {
			continue
		}
		for _, entry := range entriesOf(base) {
			if !r.releases(change, entry) {
				continue
			}
			had := covered(fieldsOf(entry), change.Release.Fields)
			all = all.Union(had)
			mine := had.Intersection(fieldsBy(w.made.before, r.isFamily))
			fieldsOf(like(w.made, entry)).Intersection(mine).Iterate(func(p fieldpath.Path) {
				c.breach(Atomicity, "%s: the hand-over %s has left %s the owner of %s in %s@%d, which was released", r, w.At, str(entry, "manager"), p, w.ref, w.made.Revision)
			})
		}
	}
	for _, entry := range entriesOf(w.made) {
		if manager := str(entry, "manager"); manager == r.Spec.FieldManager || manager == defaultManager {
			continue
		}
		before := fieldsOf(like(w.made.before, entry)).Union(fieldsOf(like(base, entry)))
		fieldsOf(entry).Intersection(all).Difference(before).Iterate(func(p fieldpath.Path) {
			c.breach(Atomicity, "%s: the hand-over %s has made %s the owner of %s in %s@%d, and it was to go to %q", r, w.At, str(entry, "manager"), p, w.ref, w.made.Revision, r.Spec.FieldManager)
		})
	}
	return all
}

// releases reports whether a change releases what an entry of managedFields has.
func (r *run) releases(change api.Change, entry map[string]any) bool {
	manager := str(entry, "manager")
	keeps := manager == r.Spec.FieldManager && str(entry, "operation") == "Apply"
	return !keeps && slices.Contains(change.Release.Managers, manager) && str(entry, "subresource") != "status" && str(entry, "apiVersion") == change.Target.APIVersion
}

func (r *run) isFamily(manager string) bool { return strings.HasPrefix(manager, r.family()) }

// like is the entry of managedFields of an object by the same owner; nil if there is none.
func like(v *version, entry map[string]any) map[string]any {
	for _, other := range entriesOf(v) {
		same := true
		for _, key := range []string{"manager", "operation", "subresource", "apiVersion"} {
			same = same && str(other, key) == str(entry, key)
		}
		if same {
			return other
		}
	}
	return nil
}

// covered are the fields of a set that are, or are inside of, one of some paths; all without any.
func covered(set *fieldpath.Set, paths []string) *fieldpath.Set {
	if len(paths) == 0 {
		return set
	}
	out := fieldpath.NewSet()
	set.Iterate(func(p fieldpath.Path) {
		for n := range p {
			if slices.Contains(paths, p[:n+1].String()) {
				out.Insert(p.Copy())
			}
		}
	})
	return out
}
