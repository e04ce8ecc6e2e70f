package oracle

import (
	"slices"

	api "janus.io/janus/api/v1alpha1"
)

// judgeLost: what another client has written is not overwritten by a request that was
// not meant to, and a Transaction touches nothing but the fields of its changes.
func (c *trial) judgeLost(r *run) {
	for _, w := range r.writes {
		if w.made == nil || w.item < 0 {
			continue
		}
		s := r.before(w.made.Revision)
		if s == nil || w.item >= len(s.items) {
			continue
		}
		switch {
		case w.role == do && w.Method != "POST":
			c.judgeDrift(r, w, s)
		case w.role == do:
			c.judgeMade(r, w)
		case w.role == undo && w.Method == "DELETE":
			c.judgeUnmade(r, w, s)
		case w.role == undo && w.Method == "PATCH":
			c.judgeRestored(r, w, s)
		}
	}
}

// judgeMade: a creation meets nothing.
func (c *trial) judgeMade(r *run, w *write) {
	if w.made.before != nil {
		c.breach(NoLostWrite, "%s: the creation %s met %s@%d", r.named(w.item), w.At, w.ref, w.made.before.Revision)
	}
}

// judgeDrift: a change is made to the target as it was prepared. What others have
// written since is not overwritten.
func (c *trial) judgeDrift(r *run, w *write, s *state) {
	prepared, met := s.items[w.item].before, w.made.before
	if prepared == nil || met == nil {
		return // that is for judgeIntent
	}
	if met.uid != prepared.uid {
		c.breach(NoLostWrite, "%s: %s changed %s@%d of uid %s, and uid %q was prepared", r.named(w.item), w.At, w.ref, w.made.Revision, met.uid, prepared.uid)
		return
	}
	kind := r.Spec.Changes[w.item].Type
	if kind == api.Patch {
		c.judgePatched(r, w)
	}
	was := c.objects[w.ref].named(prepared.version)
	if was == nil || was == met {
		return
	}
	var touched []change
	if kind != api.Delete {
		touched = differences(c.merged(met), c.merged(w.made))
	}
	for _, d := range differences(c.merged(was), c.merged(met)) {
		switch {
		case isReference(d.path), d.path[len(d.path)-1] == "caBundle":
		case kind == api.Delete, reachesAny(d.path, touched):
			c.breach(NoLostWrite, "%s: %s@%d, made by %s, overwrote %s = %s, which another client wrote after it was prepared @%d (then %s)",
				r.named(w.item), w.ref, w.made.Revision, w.At, d, shown(d.now), was.Revision, shown(d.was))
		}
	}
}

// isReference reports whether a path is of a reference to an owner: those go when a
// change deletes the owner.
func isReference(path []string) bool {
	return len(path) > 1 && path[0] == "metadata" && path[1] == "ownerReferences"
}

// judgePatched: a Patch changes the fields that it names. Where the server completes
// an object by itself, only its metadata are looked at.
func (c *trial) judgePatched(r *run, w *write) {
	asked, _ := c.parts("", askedFor(r.contents[w.item], w.ref)).(map[string]any)
	named := differences(nil, asked)
	if r.Spec.Changes[w.item].Release != nil {
		named = nil // It has the values that are there.
	}
	for _, d := range c.notAdmitted(differences(c.merged(w.made.before), c.merged(w.made))) {
		if (d.path[0] == "metadata" || plainData(w.ref)) && !reachesAny(d.path, named) {
			c.breach(NoLostWrite, "%s: %s@%d, made by %s, changed %s from %s to %s, which the Patch does not name",
				r.named(w.item), w.ref, w.made.Revision, w.At, d, shown(d.was), shown(d.now))
		}
	}
}

// judgeUnmade: what is deleted in a rollback was made by the Transaction, and is
// nobody else's too.
func (c *trial) judgeUnmade(r *run, w *write, s *state) {
	first := w.made.before
	if first == nil {
		return
	}
	var since []*version
	for first.before != nil {
		since = append(since, first)
		first = first.before
	}
	if !first.by.of(r) || first.by.Method != "POST" {
		c.breach(NoLostWrite, "%s: %s deleted %s@%d (uid %s), which the Transaction had not made", r.named(w.item), w.At, w.ref, w.made.Revision, first.uid)
		return
	}
	if r.forces(s, w.item) {
		return
	}
	now := c.merged(w.made.before)
	slices.Reverse(since)
	for _, v := range since {
		if v.of(r) || v.byControlPlane() {
			continue
		}
		restores := v.by != nil && v.by.role == undo // another Transaction undoes its change
		for _, d := range c.notAdmitted(differences(c.merged(v.before), c.merged(v))) {
			if restores && same(valueIn(c.merged(first), d.path), d.now) {
				continue
			}
			if d.now != nil && same(valueIn(now, d.path), d.now) {
				c.breach(NoLostWrite, "%s: %s deleted %s@%d with %s = %s, which another client wrote @%d",
					r.named(w.item), w.At, w.ref, w.made.Revision, d, shown(d.now), v.Revision)
			}
		}
	}
}

// forces reports whether a rollback may overwrite what others have written: that is
// on record before.
func (r *run) forces(s *state, i int) bool {
	return r.Spec.ConflictPolicy == api.ConflictForce && i < len(s.items) && len(s.items[i].conflicts) > 0
}

// judgeRestored: a rollback changes nothing but what the changes had changed, and
// nothing that another client has written since.
func (c *trial) judgeRestored(r *run, w *write, s *state) {
	found := c.notAdmitted(differences(c.merged(w.made.before), c.merged(w.made)))
	if len(found) == 0 {
		return
	}
	if c.successor(r, w) {
		c.breach(NoLostWrite, "%s: %s changed %s@%d (uid %s), which another client had made in place of what the Transaction had changed",
			r.named(w.item), w.At, w.ref, w.made.Revision, w.made.uid)
		return
	}
	changed := c.changedBy(r, w)
	for _, d := range found {
		if isReference(d.path) && r.Spec.Changes[w.item].Type == api.Delete || d.path[len(d.path)-1] == "caBundle" {
			continue
		}
		if isMark(d.path) && r.Spec.Changes[w.item].Type == api.Delete && d.was == r.mark(w.item) && d.now == nil {
			continue // What is re-created of an empty object bears it for a while.
		}
		if r.forces(s, w.item) && d.was == nil && isKey(d.path) && reachesAny(d.path[:len(d.path)-1], changed) {
			continue // An item of a list that is re-created by force has its key too.
		}
		if !reachesAny(d.path, changed) {
			c.breach(NoLostWrite, "%s: %s@%d, made by %s, changed %s from %s to %s, which no change of the Transaction had changed",
				r.named(w.item), w.ref, w.made.Revision, w.At, d, shown(d.was), shown(d.now))
			continue
		}
		if v, wrote := c.lastWriter(r, w, d); v != nil && !r.forces(s, w.item) {
			c.breach(NoLostWrite, "%s: %s@%d, made by %s, changed %s from %s to %s, and another client had written %s @%d",
				r.named(w.item), w.ref, w.made.Revision, w.At, d, shown(d.was), shown(d.now), shown(wrote), v.Revision)
		}
	}
}

// successor reports whether a write meets an object that another client has made since
// the change of the same item to the one that had its name before.
func (c *trial) successor(r *run, w *write) bool {
	first := w.made
	for first.before != nil {
		first = first.before
	}
	if first.of(r) {
		return false
	}
	return slices.ContainsFunc(r.writes, func(earlier *write) bool {
		return earlier.item == w.item && earlier.role == do && earlier.made != nil && earlier.made.Revision < first.Revision
	})
}

// changedBy lists the leaves of a target that the changes of a Transaction have
// changed before a write.
func (c *trial) changedBy(r *run, until *write) []change {
	var out []change
	for _, w := range r.writes {
		if w.ref == until.ref && w.role == do && w.made != nil && w.made.Revision < until.made.Revision && !w.made.Deleted {
			out = append(out, differences(c.merged(w.made.before), c.merged(w.made))...)
		}
	}
	return out
}

// lastWriter finds another client who wrote, or applied as it was, after the first change
// of a Transaction, what a rollback overwrites.
func (c *trial) lastWriter(r *run, w *write, overwritten change) (*version, any) {
	var last *version
	var wrote any
	begun := false
	writers := map[*version]*version{} // as of each version
	for _, v := range c.objects[w.ref].versions {
		if v == w.made {
			break
		}
		writers[v.before] = last
		if v.of(r) {
			begun = begun || v.by != nil && v.by.role == do
			continue
		}
		if !begun || v.before == nil || v.Deleted || v.terminating() || c.repeatedAround(r, c.objects[w.ref], v) != nil {
			continue // What is on its way out takes with it what is written to it.
		}
		if v.asserts(overwritten.path) {
			last, wrote = v, valueIn(c.merged(v), overwritten.path)
		}
		for _, d := range differences(c.merged(v.before), c.merged(v)) {
			if reaches(d.path, overwritten.path) && (d.now != nil || !c.removedBefore(r, v, overwritten.path)) {
				last, wrote = v, valueIn(c.merged(v), overwritten.path)
			}
		}
		if origin := v.restoresTo(); last == v && origin != nil && same(valueIn(c.merged(origin), overwritten.path), wrote) {
			last = writers[origin]
		}
	}
	if last == nil || !same(wrote, valueIn(c.merged(w.made.before), overwritten.path)) {
		return nil, nil
	}
	return last, wrote
}

// removedBefore reports whether a change of a Transaction had removed what another client
// removes in a version, after another change had added it again. A removal leaves no
// owner: nobody can tell theirs from that of the rollback.
func (c *trial) removedBefore(r *run, v *version, path []string) bool {
	return slices.ContainsFunc(r.writes, func(w *write) bool {
		return w.ref == v.Ref && w.role == do && w.made != nil && w.made.before != nil && !w.made.Deleted && w.made.Revision < v.Revision &&
			valueIn(c.merged(w.made.before), path) != nil && valueIn(c.merged(w.made), path) == nil
	})
}

// controlPlane are the field managers of Kubernetes itself. They complete objects.
var controlPlane = map[string]bool{
	"kube-apiserver": true, "kube-controller-manager": true, "kube-scheduler": true, "kubelet": true,
	"cloud-controller-manager": true, "clusterrole-aggregation-controller": true,
}

// byControlPlane reports whether managedFields show that nobody but the control
// plane has made a version.
func (v *version) byControlPlane() bool {
	old := map[string]bool{}
	for _, e := range list(v.before.Object.Object, "metadata", "managedFields") {
		old[encoded(e)] = true
	}
	found := false
	for _, e := range list(v.Object.Object, "metadata", "managedFields") {
		entry, _ := e.(map[string]any)
		if old[encoded(entry)] {
			continue
		}
		if !controlPlane[str(entry, "manager")] {
			return false
		}
		found = true
	}
	return found
}
