package oracle

import (
	"slices"

	api "janus.io/janus/api/v1alpha1"
)

// judgeDepends: a change is made after all that it depends on is in effect and ready, and
// rolled back before that. Without dependsOn it depends on all that come before it in the
// list.
func (c *trial) judgeDepends(r *run) {
	on := r.dependencies()
	needs, _ := c.needs(r)
	c.judgeAwaits(r, on)
	// In a list, the owners of one may be restored after the values of the one before it.
	counts := func(w *write) bool { return c.effectOf(w) != madeOwners }
	if r.branches() {
		counts = nil
	}
	for _, w := range r.writes {
		if w.made == nil || w.item < 0 {
			continue
		}
		s := r.before(w.made.Revision)
		if s == nil || len(s.items) != len(on) {
			continue
		}
		switch w.role {
		case do:
			for _, j := range on[w.item] {
				outOf := r.turns(w.item) && s.items[j].in(api.ItemSkipped) // It has nothing to delete.
				if !outOf && !r.doneAt(s, j) && !c.madeBefore(r, s, j, w) {
					c.breach(Order, "%s: %s made %s@%d while item %d, which it depends on, was %s (@%d), ready: %t",
						r.named(w.item), w.At, w.ref, w.made.Revision, j, s.items[j].state, s.Revision, s.items[j].ready)
				}
			}
		case undo:
			if counts != nil && !counts(w) {
				continue
			}
			for k := range on {
				// What was refused is set aside, and may need what is rolled back now. What it needs
				// waits for it.
				if slices.Contains(on[k], w.item) && !r.waits(s, needs, k) && s.items[k].in(api.ItemCommitting, api.ItemCommitted, api.ItemRollingBack) && !r.compensatedBefore(s, k, w, counts) {
					c.breach(Order, "%s: %s undid %s@%d while item %d, which depends on it, was %s (@%d)",
						r.named(w.item), w.At, w.ref, w.made.Revision, k, s.items[k].state, s.Revision)
				}
			}
		}
	}
}

// waits reports whether an item is set aside, or comes before one that is: that one depends on it,
// or is a later change of the same object.
func (r *run) waits(s *state, needs [][]int, k int) bool {
	for a := range s.items {
		if s.items[a].aside && s.items[a].in(api.ItemRollingBack) && (a == k || a > k && r.Items[a] == r.Items[k] || slices.Contains(deep(needs, a), k)) {
			return true
		}
	}
	return false
}

// judgeAwaits: an Await begins to wait once all that it depends on is done, and it takes no
// lock, unless it is a guard, and saves nothing.
func (c *trial) judgeAwaits(r *run, on [][]int) {
	for i := range r.Spec.Changes {
		s := r.reached(i, api.ItemCommitted)
		if !r.awaits(i) || s == nil || len(s.items) != len(on) {
			continue
		}
		for _, j := range on[i] {
			if !r.doneAt(s, j) {
				c.breach(Order, "%s: it waits (@%d) while item %d, which it depends on, is %s, ready: %t", r.named(i), s.Revision, j, s.items[j].state, s.items[j].ready)
			}
		}
		if (s.items[i].lease != "") != r.Spec.Changes[i].Guard || s.items[i].before != nil {
			c.breach(Order, "%s: it only waits (guard: %t), and has the lock %q or a before-image (@%d)", r.named(i), r.Spec.Changes[i].Guard, s.items[i].lease, s.Revision)
		}
	}
}

// madeBefore reports whether a change was in effect before a write, although that was not
// on record: several are recorded together. One that found its content in effect has written
// nothing, and after a crash it may find something else.
func (c *trial) madeBefore(r *run, s *state, i int, w *write) bool {
	change := &r.Spec.Changes[i]
	if !s.items[i].in(api.ItemCommitting) || change.ReadyWhen != nil || change.GoneWhen != nil {
		return false
	}
	before, after := r.around(w, i, do, nil)
	if !before && !after && !r.turns(i) {
		switch change.Type {
		case api.Patch, api.Update:
			if met := c.objects[r.Items[i]].at(w.made.Revision); met != nil && c.hasContent(r, i, met, s) {
				return true
			}
		case api.Delete:
			// Another client may have created it since it was found gone.
			if c.objects[r.Items[i]].absent(r.reached(i, api.ItemCommitting).Revision, w.made.Revision) {
				return true
			}
		}
	}
	next := r.next(s, i)
	return before || !after && (next == nil || next.items[i].in(api.ItemCommitted))
}

// compensatedBefore reports the same of a compensation. One that was seen counts even if it
// never got on record: its before-image may have been edited before a process went on.
// Nor does it matter that another process has repeated it. If counts is set, only writes count of which
// it says so.
func (r *run) compensatedBefore(s *state, i int, w *write, counts func(*write) bool) bool {
	own := func(other *write) bool { return other.Process == w.Process && (counts == nil || counts(other)) }
	if before, after := r.around(w, i, undo, own); before && !after {
		return s.items[i].in(api.ItemRollingBack)
	}
	before, after := r.around(w, i, undo, counts)
	next := r.next(s, i)
	return s.items[i].in(api.ItemRollingBack) && !after && (before || next == nil || next.items[i].in(api.ItemRolledBack))
}

// around reports whether an item has had an effect in a role before and after a write: any, or one
// that counts.
func (r *run) around(w *write, i int, as role, counts func(*write) bool) (before, after bool) {
	for _, own := range r.made(i, as) {
		if counts != nil && !counts(own) {
			continue
		}
		before = before || own.made.Revision < w.made.Revision
		after = after || own.made.Revision > w.made.Revision
	}
	return before, after
}

// next returns the first state after s in which an item is in another one; nil if there is
// none.
func (r *run) next(s *state, i int) *state {
	for _, later := range r.states {
		if later.Revision > s.Revision && i < len(later.items) && later.items[i].state != s.items[i].state {
			return later
		}
	}
	return nil
}

// dependencies returns what each change depends on, by the spec; of what is deleted instead, the other
// way round.
func (r *run) dependencies() [][]int {
	byName, branches := map[string]int{}, r.branches()
	for i := range r.Spec.Changes {
		byName[r.change(i)] = i
	}
	out := make([][]int, len(r.Spec.Changes))
	if !branches {
		return r.justAfter()
	}
	for i, change := range r.Spec.Changes {
		for _, name := range change.DependsOn {
			out[i] = append(out[i], byName[name])
		}
	}
	return r.turnedAround(out)
}

// branches reports whether the list is not the order.
func (r *run) branches() bool {
	if r.Spec.Order != "" {
		return r.Spec.Order == api.OrderGraph
	}
	return slices.ContainsFunc(r.Spec.Changes, func(c api.Change) bool { return len(c.DependsOn) > 0 })
}

// doneAt reports whether a change was done in a state. Where the list is the order, one
// that is skipped, or has failed without stopping the others, is no reason not to go on. An
// Await that was done stays so: it is called RolledBack as soon as a rollback begins, and a request
// that was sent before may land then.
func (r *run) doneAt(s *state, i int) bool {
	item, change := &s.items[i], &r.Spec.Changes[i]
	if item.in(api.ItemSkipped) || item.failed && !item.in(api.ItemCommitting) {
		return !r.branches()
	}
	if r.awaits(i) && item.in(api.ItemRolledBack) {
		return item.ready
	}
	return item.in(api.ItemCommitted) && (item.ready || change.ReadyWhen == nil && change.GoneWhen == nil)
}
