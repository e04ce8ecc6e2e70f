package oracle

import (
	api "janus.io/janus/api/v1alpha1"
)

// judgeGuards: a guard that was found ready held again, of the same object and under its lock,
// right before the first change was begun, and right before it is on record that the
// Transaction may commit.
func (c *trial) judgeGuards(r *run) {
	var was *state
	for _, s := range r.states {
		if was != nil && s.by != nil && len(s.items) == len(was.items) {
			switch {
			case s.guarded && !was.guarded:
				c.judgeGuarded(r, was, s, "commit")
			case r.anyMade(s) && !r.anyMade(was):
				c.judgeGuarded(r, was, s, "first change")
			}
			if s.phase == string(api.PhaseCommitted) && !s.guarded && len(r.guards(s)) > 0 {
				c.breach(Atomicity, "%s is Committed (@%d), and that its guards held right before that is not on record", r, s.Revision)
			}
		}
		was = s
	}
}

// guards are the guards that were found ready, as a state says.
func (r *run) guards(s *state) []int {
	var out []int
	for i := range min(len(s.items), len(r.Spec.Changes)) {
		if r.Spec.Changes[i].Guard && s.items[i].in(api.ItemCommitted) && s.items[i].ready {
			out = append(out, i)
		}
	}
	return out
}

// anyMade reports whether a change was begun.
func (r *run) anyMade(s *state) bool {
	for i := range min(len(s.items), len(r.Spec.Changes)) {
		if !r.awaits(i) && !s.items[i].in(api.ItemPending, api.ItemPrepared, api.ItemSkipped) {
			return true
		}
	}
	return false
}

// judgeGuarded holds the guards of one state against their objects up to the next.
func (c *trial) judgeGuarded(r *run, was, s *state, before string) {
	for _, i := range r.guards(was) {
		text := ""
		if when := r.Spec.Changes[i].ReadyWhen; when != nil {
			text = when.Expression
		}
		if text != "" && !c.held(r, i, text, true, was.Revision, s.Revision) {
			c.breach(Order, "%s: the guard is said to hold right before the %s (@%d), and %s was at no time true since @%d", r.named(i), before, s.Revision, text, was.Revision)
		}
		if !c.wasThere(r, i, was.items[i].guardUID, was.Revision, s.Revision) {
			c.breach(Order, "%s: the guard was found to hold of %q, and right before the %s (@%d) that was not there", r.named(i), was.items[i].guardUID, before, s.Revision)
		}
		if lease := s.items[i].lease; lease != "" && !c.leaseMeddled(lease) && !c.locked(r, lease, was.Revision) && !c.locked(r, lease, s.Revision) {
			c.breach(LockExclusion, "%s: the guard is judged right before the %s (@%d) without its lock %s", r.named(i), before, s.Revision, lease)
		}
	}
}

// wasThere reports whether the target of an item had a uid, or was absent if it is empty, at some
// time between two revisions.
func (c *trial) wasThere(r *run, i int, uid string, from, to int64) bool {
	o := c.objects[r.Items[i]]
	is := func(v *version) bool {
		if v == nil || v.Deleted {
			return uid == ""
		}
		return v.uid == uid
	}
	if is(o.at(from + 1)) {
		return true
	}
	for _, v := range o.all() {
		if v.Revision > from && v.Revision < to && is(v) {
			return true
		}
	}
	return false
}
