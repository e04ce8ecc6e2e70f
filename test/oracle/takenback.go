package oracle

import (
	"slices"

	api "janus.io/janus/api/v1alpha1"
)

// undone are the Transactions that an undo says it undoes, the newest first.
func (c *trial) undone(r *run) (out []*run) {
	end := r.end()
	if end == nil || r.Spec.UndoOf == nil {
		return nil
	}
	uids := []string{str(end.Object.Object, "status", "undoing", "uid")}
	for _, e := range list(end.Object.Object, "status", "undoing", "earlier") {
		one, _ := e.(map[string]any)
		uids = append(uids, str(one, "uid"))
	}
	for _, uid := range uids {
		at := slices.IndexFunc(c.runs, func(of *run) bool { return of != r && of.end() != nil && of.end().uid == uid })
		if uid == "" || at < 0 {
			return nil
		}
		out = append(out, c.runs[at])
	}
	return out
}

// judgeTakenBack: once an undo has committed, every object that the Transactions which it undoes have
// written is as it was before the first of those writes, unless another client has written it in between.
// With toRevision it undoes all that has ended with changes in effect since, by its number, and nothing else.
func (c *trial) judgeTakenBack(r *run) {
	s := r.end()
	if s == nil || s.phase != string(api.PhaseCommitted) || r.Spec.UndoOf == nil {
		return
	}
	undone := c.undone(r)
	if r.Spec.UndoOf.ToRevision != nil {
		c.judgeRange(r, undone)
		c.judgeAllUndone(r, undone)
	}
	for ref, o := range c.objects {
		if first := firstWrite(undone, ref); first != nil {
			c.judgeAsBefore(r, o, first, undone)
		}
	}
}

// judgeRange: what is undone has a higher number than the revision, and the newest comes first.
func (c *trial) judgeRange(r *run, undone []*run) {
	for i, one := range undone {
		switch {
		case one.end().revision <= *r.Spec.UndoOf.ToRevision:
			c.breach(Order, "%s undoes %s, which has number %d", r, one, one.end().revision)
		case i > 0 && one.end().revision >= undone[i-1].end().revision:
			c.breach(Order, "%s undoes %s (%d) after %s (%d)", r, one, one.end().revision, undone[i-1], undone[i-1].end().revision)
		}
	}
}

// judgeAllUndone: what had ended with changes in effect when an undo began, with a higher number, is undone,
// if it has written something.
func (c *trial) judgeAllUndone(r *run, undone []*run) {
	for _, one := range c.runs {
		end := one.end()
		if one == r || end == nil || one.tampered || one.Namespace != r.Namespace || !one.endedInEffect() ||
			end.revision <= *r.Spec.UndoOf.ToRevision || end.Revision > r.states[0].Revision || slices.Contains(undone, one) {
			continue
		}
		if one.hasChanged(end) && (one.gone == nil || one.gone.Revision > r.end().Revision) {
			c.breach(Atomicity, "%s has committed, and %s (@%d), which has number %d and changes in effect, is not undone", r, one, end.Revision, end.revision)
		}
	}
}

// hasChanged reports whether a state of a Transaction has a change in effect: an Await makes none.
func (r *run) hasChanged(s *state) bool {
	for i := range s.items {
		if s.items[i].in(api.ItemCommitted) && !s.items[i].unchanged && !r.awaits(i) {
			return true
		}
	}
	return false
}

// firstWrite is the version of an object that the first write of some Transactions has made.
func firstWrite(runs []*run, ref Ref) *version {
	var first *version
	for _, one := range runs {
		for _, w := range one.writes {
			if w.ref == ref && w.made != nil && w.role == do && (first == nil || w.made.Revision < first.Revision) {
				first = w.made
			}
		}
	}
	return first
}

// wroteBefore reports whether a Transaction had written the object of a version before that.
func wroteBefore(r *run, v *version) bool {
	return r != nil && slices.ContainsFunc(r.writes, func(w *write) bool {
		return w.ref == v.Ref && w.made != nil && w.made.Revision < v.Revision
	})
}

// mayHaveDeleted reports whether a Transaction takes the end of an object for its own, though another client
// has deleted it: of a request that got no answer nobody can tell.
func (r *run) mayHaveDeleted(v *version) bool {
	s := r.end()
	for i, ref := range r.Items {
		image := r.imageOf(i)
		if ref == v.Ref && r.Spec.Changes[i].Type == api.Delete && image != nil && image.uid == v.uid && i < len(s.items) && s.items[i].in(api.ItemCommitted) && !s.items[i].unchanged {
			return true
		}
	}
	return false
}

// judgeAsBefore compares an object, as an undo has left it, with what it was before a write. One whose
// lock was taken from it may have written on: a foreground deletion deletes the locks as well.
func (c *trial) judgeAsBefore(r *run, o *object, first *version, undone []*run) {
	at := r.states[slices.IndexFunc(r.states, func(s *state) bool { return s.phase == string(api.PhaseCommitted) })].Revision
	// Its locks are released before it says that it has committed.
	foreign := slices.ContainsFunc(o.versions, func(v *version) bool {
		return v.Revision >= first.Revision && v.Revision <= at && (v.by == nil || v.Revision > r.states[0].Revision && !v.by.of(r) || !slices.Contains(undone, v.by.run) && wroteBefore(v.by.run, first))
	})
	if foreign {
		return
	}
	before, now := first.before, o.at(at)
	if before == nil && slices.ContainsFunc(o.versions, func(v *version) bool {
		return v.Deleted && v.Revision < first.Revision && slices.ContainsFunc(undone, func(one *run) bool { return one.mayHaveDeleted(v) })
	}) {
		return
	}
	there := now != nil && !now.Deleted
	switch {
	case (before != nil) != there:
		c.breach(Atomicity, "%s has committed (@%d), and %s is there: %t; before the first of what it undoes (@%d) it was: %t", r, at, first.Ref, there, first.Revision, before != nil)
	case there:
		for name, value := range before.content() {
			if name != "metadata" && !same(value, now.content()[name]) {
				c.breach(Atomicity, "%s has committed (@%d), and .%s of %s is not what it was before the first of what it undoes (@%d)", r, at, name, first.Ref, first.Revision)
			}
		}
	}
}
