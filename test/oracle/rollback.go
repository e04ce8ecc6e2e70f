package oracle

import (
	"strings"

	api "janus.io/janus/api/v1alpha1"
)

// judgeRollback: of a Transaction that has not committed nothing is left, and all
// that others have written since is there.
func (c *trial) judgeRollback(r *run) {
	s := r.end()
	if s == nil || s.phase != string(api.PhaseRolledBack) && s.phase != string(api.PhaseFailed) {
		return
	}
	if !r.begun() {
		for _, w := range r.writes {
			if w.made != nil {
				c.breach(Atomicity, "%s: it is %s without having begun, and %s made %s@%d", r, s.phase, w.At, w.ref, w.made.Revision)
			}
		}
		return
	}
	seen := map[Ref]bool{}
	for i := range min(len(s.items), len(r.Items)) {
		if target := r.Items[i]; !seen[target] && !r.awaits(i) {
			seen[target] = true
			if excused, ok := r.excuses(s, target); ok {
				c.judgeTargetRolledBack(r, target, excused)
			}
		}
	}
}

// excuses returns the fields of a target that are known not to be rolled back; ok is
// false when that is so of the whole target.
func (r *run) excuses(s *state, target Ref) (fields []string, ok bool) {
	for i := range min(len(s.items), len(r.Items)) {
		if r.Items[i] != target {
			continue
		}
		item := &s.items[i]
		switch {
		case item.back != nil, item.in(api.ItemRolledBack, api.ItemRejected, api.ItemPrepared, api.ItemPending, api.ItemSkipped):
			fields = append(fields, item.restored()...)
		case item.in(api.ItemUnresolved) && (item.reason == "FieldConflict" || item.reason == "Altered") && r.writesFields(i) && len(item.conflicts) < 16:
			for _, found := range item.conflicts {
				fields = append(fields, found.field)
			}
		default:
			return nil, false
		}
	}
	return fields, true
}

func (r *run) writesFields(i int) bool {
	return r.Spec.Changes[i].Type == api.Update || r.Spec.Changes[i].Type == api.Patch
}

// judgeTargetRolledBack holds the end of a target against what it was, with what others
// have written since.
func (c *trial) judgeTargetRolledBack(r *run, target Ref, excused []string) {
	o := c.objects[target]
	want, ok := c.standing(r, o)
	if !ok {
		return
	}
	excused = append(excused, want.either...)
	last := o.last()
	switch {
	case want.want == nil && last == nil:
		return
	case want.want == nil:
		c.breach(Atomicity, "%s: %s@%d is still there, and it was not before", r, target, last.Revision)
		return
	case last == nil:
		c.breach(Atomicity, "%s: %s is gone, and it was there before (@%d)", r, target, revisionOf(want.base))
		return
	}
	want.remade = want.base != nil && last.uid != want.base.uid
	for _, found := range c.departures(r, want, last, excused) {
		c.breach(Atomicity, "%s: %s@%d has %s = %s, and ought to have %s (it was %s @%d)",
			r, target, last.Revision, found, shown(found.now), shown(found.was), shown(valueIn(c.merged(want.base), found.path)), revisionOf(want.base))
	}
	c.judgeOrder(r, target, want, last, excused)
	c.judgeOwners(r, want, last, len(excused) > 0)
}

func revisionOf(v *version) int64 {
	if v == nil {
		return 0
	}
	return v.Revision
}

// departures lists where an object is not as it ought to be. was of each is what it
// ought to have.
func (c *trial) departures(r *run, want standing, last *version, excused []string) []change {
	wanted, found := want.want, c.merged(last)
	if !want.written && want.base != nil {
		wanted, found = want.base.content(), last.content()
	}
	if want.remade && (rewritten[last.Ref.Resource] || str(last.Object.Object, "type") == "kubernetes.io/service-account-token") {
		return nil
	}
	forced := r.Spec.ConflictPolicy == api.ConflictForce
	var out []change
	for _, d := range differences(wanted, found) {
		switch {
		case len(d.path) > 1 && d.path[0] == "metadata" && d.path[1] == "ownerReferences" && want.remade:
		case excuses(excused, dotted(d.path)):
		case forced && want.written && same(valueIn(c.merged(want.base), d.path), d.now):
		case d.path[len(d.path)-1] == "caBundle":
		default:
			out = append(out, d)
		}
	}
	return out
}

// rewritten are kinds of which an object cannot be re-created just as it was.
var rewritten = map[string]bool{"jobs.batch": true, "pods": true, "persistentvolumeclaims": true}

// excuses reports whether a path is of one of some fields, of a part of one, or of what
// one is a part of.
func excuses(fields []string, path string) bool {
	for _, f := range fields {
		if within(path, f) || within(f, path) {
			return true
		}
	}
	return false
}

// within reports whether a path is that of a field or of a part of it. Where a name has
// dots, as those of labels do, the text does not tell it from the path of a part.
func within(path, field string) bool {
	rest, ok := strings.CutPrefix(path, field)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func valueIn(object map[string]any, path []string) any {
	if object == nil || len(path) == 0 {
		return nil
	}
	return valueAt(object, path)
}

// shown is a value as a message has it.
func shown(v any) string {
	if v == nil {
		return "nothing"
	}
	text := encoded(v)
	return text[:min(len(text), 200)]
}

// judgeUnresolved: what could not be rolled back is named, with the reason.
func (c *trial) judgeUnresolved(r *run) {
	s := r.end()
	if s == nil || s.phase != string(api.PhaseFailed) {
		return
	}
	for i := range min(len(s.items), len(r.Items)) {
		item := &s.items[i]
		if !item.in(api.ItemUnresolved) {
			continue
		}
		if item.reason == "" || item.message == "" {
			c.breach(Atomicity, "%s: it is Unresolved with reason %q and message %q", r.named(i), item.reason, item.message)
		}
		if name := r.Items[i].Name; !strings.Contains(item.message, name) && len(item.message) < 120 {
			c.breach(Atomicity, "%s: the message does not name %s: %s", r.named(i), name, item.message)
		}
		if item.reason != "FieldConflict" {
			continue
		}
		if len(item.conflicts) == 0 {
			c.breach(Atomicity, "%s: it is Unresolved for a conflict, and lists no field", r.named(i))
		}
		for _, found := range item.conflicts {
			if found.field == "" {
				c.breach(Atomicity, "%s: it lists a conflict without a field", r.named(i))
			}
		}
	}
}
