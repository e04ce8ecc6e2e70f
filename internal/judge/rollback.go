package judge

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
		if target := r.Items[i]; !seen[target] {
			seen[target] = true
			if excused, ok := r.excuses(s, target); ok {
				c.judgeTakenBack(r, target, excused)
			}
		}
	}
}

// excuses gives the fields of a target that are known not to be taken back; ok is
// false when that is so of the whole target.
func (r *run) excuses(s *state, target Ref) (fields []string, ok bool) {
	for i := range min(len(s.items), len(r.Items)) {
		if r.Items[i] != target {
			continue
		}
		item := &s.items[i]
		switch {
		case item.in(api.ItemRolledBack, api.ItemRejected, api.ItemPrepared, api.ItemPending):
		case item.in(api.ItemUnresolved) && item.reason == "FieldConflict" && r.writesFields(i) && len(item.conflicts) < 16:
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

// standing is what a target ought to be when a Transaction has been taken back.
type standing struct {
	base *version // before the first write; nil if it was not there
	want map[string]any
	// written tells whether others have written values since, touched whether they
	// have written at all, remade whether the object is another by now.
	written, touched, remade bool
}

// judgeTakenBack holds the end of a target against what it was, with what others
// have written since.
func (c *trial) judgeTakenBack(r *run, target Ref, excused []string) {
	o := c.objects[target]
	want, ok := c.standing(r, o)
	if !ok {
		return
	}
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
	c.judgeOwners(r, want, last, len(excused) > 0)
}

func revisionOf(v *version) int64 {
	if v == nil {
		return 0
	}
	return v.Revision
}

// standing follows what others have done to a target since the first write of a
// Transaction; ok is false if it has written nothing.
func (c *trial) standing(r *run, o *object) (standing, bool) {
	var s standing
	if o == nil {
		return s, false
	}
	first := 0
	for ; first < len(o.versions) && !o.versions[first].of(r); first++ {
	}
	if first == len(o.versions) {
		return s, false
	}
	own := o.versions[first].Revision
	first = c.perhapsDeleted(r, o, first)
	s.base = o.versions[first].before
	s.want = c.merged(s.base)
	shared := true        // with the version it comes from
	created := ""         // the uid of an object that a change has made
	var between *standing // what it was before others made an object in its place
	for _, v := range o.versions[first:] {
		if v.Revision < own {
			continue
		}
		switch {
		case v.of(r):
			if v.by != nil && v.by.Method == "POST" && v.by.role == do {
				created = v.uid
			}
			continue
		case v.terminating() && v.endedBy().of(r) && !v.Deleted, v.Deleted && c.bereaved(r, v):
			continue
		case v.Deleted && between != nil:
			s, between, shared = *between, nil, true
			s.touched, s.written = true, true
		case v.Deleted:
			s.touched, s.written = true, true
			if v.uid != created {
				s.want, shared = nil, true
			}
		case v.before == nil:
			was := s
			between = &was
			s.touched, s.written = true, true
			s.want, shared = c.merged(v), true
			s.base = nil
		default:
			s.touched = true
			if v.uid == created {
				continue
			}
			for _, d := range differences(c.merged(v.before), c.merged(v)) {
				if shared {
					s.want, shared = copied(s.want), false
				}
				s.written = true
				s.want = with(s.want, d.path, d.now)
			}
		}
	}
	return s, true
}

// perhapsDeleted gives where the standing of a target begins whose first write by the
// Transaction, at a position, is that it was made anew. Somebody else deleted it after
// it was prepared. Of a request that got no answer nobody can tell then whether that was
// its doing.
func (c *trial) perhapsDeleted(r *run, o *object, first int) int {
	w := o.versions[first].by
	if w == nil || w.role != undo || w.Method != "POST" || w.item < 0 || r.Spec.Changes[w.item].Type != api.Delete {
		return first
	}
	prepared := r.reached(w.item, api.ItemPrepared)
	for i, v := range o.versions[:first] {
		if prepared != nil && prepared.items[w.item].before != nil && v.Deleted && v.uid == prepared.items[w.item].before.uid {
			return endBegan(o, i)
		}
	}
	return first
}

// endBegan is where the deletion of an object began that was gone at a position.
func endBegan(o *object, at int) int {
	for at > 0 && o.versions[at-1].terminating() {
		at--
	}
	return at
}

// of reports whether a Transaction has made a version, be it that an object which it
// had deleted was gone at last.
func (v *version) of(r *run) bool {
	return v.by.of(r) || v.ownEnd && v.endedBy().of(r)
}

func (w *write) of(r *run) bool { return w != nil && w.run == r }

// bereaved reports whether an object went because the Transaction has deleted its
// owner, and was to be deleted by it, too.
func (c *trial) bereaved(r *run, end *version) bool {
	if end.before == nil {
		return false
	}
	for _, e := range list(end.before.Object.Object, "metadata", "ownerReferences") {
		owner, _ := e.(map[string]any)
		for i := range r.Items {
			s := r.reached(i, api.ItemCommitting)
			if r.Spec.Changes[i].Type == api.Delete && s != nil && s.items[i].before != nil && s.items[i].before.uid == str(owner, "uid") {
				return true
			}
		}
	}
	return false
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

// rewritten are kinds of which an object cannot be made anew just as it was.
var rewritten = map[string]bool{"jobs.batch": true, "pods": true, "persistentvolumeclaims": true}

func excuses(fields []string, path string) bool {
	for _, f := range fields {
		if strings.HasPrefix(path, f) || strings.HasPrefix(f, path) {
			return true
		}
	}
	return false
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

// judgeUnresolved: what could not be taken back is named, with the reason.
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
