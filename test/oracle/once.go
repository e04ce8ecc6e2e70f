package oracle

import (
	"slices"

	api "janus.io/janus/api/v1alpha1"
)

// effect is what a write has changed.
type effect string

const (
	madeObject  effect = "creation"
	endedObject effect = "deletion"
	madeValues  effect = "values"
	madeStatus  effect = "status"
	madeOwners  effect = "owners"
)

func (c *trial) effectOf(w *write) effect {
	if w.effect == "" {
		w.effect = c.effectAt(w)
	}
	return w.effect
}

func (c *trial) effectAt(w *write) effect {
	switch {
	case w.Method == "DELETE":
		return endedObject
	case w.made.before == nil:
		return madeObject
	case w.Subresource == "status":
		return madeStatus
	case w.role == do, len(c.notAdmitted(differences(w.made.before.content(), w.made.content()))) > 0:
		return madeValues
	default:
		return madeOwners
	}
}

// onlyAdmitted reports whether a write has changed nothing but what mutating admission may
// write: a repetition without an effect meets another policy than the first one did.
func (c *trial) onlyAdmitted(w *write) bool {
	if len(c.Admitted) == 0 || w.made.before == nil || w.made.Deleted {
		return false
	}
	was, is := w.made.before, w.made
	return len(c.notAdmitted(differences(was.content(), is.content()))) == 0 &&
		same(at(was.Object.Object, "metadata", "managedFields"), at(is.Object.Object, "metadata", "managedFields"))
}

// judgeOnce: an item is done once and rolled back once. It is done again only after
// another client has written the target, and rolled back again only after that, or
// when a failed rollback is taken up again.
func (c *trial) judgeOnce(r *run) {
	for n, w := range r.writes {
		if w.made == nil {
			break
		}
		if w.role == stray || w.role == sparing {
			continue
		}
		if c.onlyAdmitted(w) {
			continue
		}
		is := c.effectOf(w)
		for m := n - 1; m >= 0; m-- {
			earlier := r.writes[m]
			if earlier.ref != w.ref || earlier.item != w.item || earlier.role != w.role || c.onlyAdmitted(earlier) || c.effectOf(earlier) != is {
				continue
			}
			if !c.mayRepeat(r, earlier, w, is) {
				what := r.String()
				if w.item >= 0 {
					what = r.named(w.item)
				}
				c.breach(ExactlyOnce, "%s: %s (%s) took effect twice, as %s@%d by %s and @%d by %s",
					what, w.role, is, w.ref, earlier.made.Revision, earlier.At, w.made.Revision, w.At)
			}
			break
		}
	}
}

// mayRepeat reports whether something has happened between two writes that makes
// the second one right.
func (c *trial) mayRepeat(r *run, earlier, later *write, is effect) bool {
	for _, v := range c.objects[later.ref].versions {
		if v.Revision > earlier.made.Revision && v.Revision < later.made.Revision && !v.of(r) {
			return true
		}
	}
	if later.role != undo || later.item < 0 {
		return false
	}
	if s := r.before(later.made.Revision); s != nil && r.forces(s, later.item) {
		// What could be restored was, and the rest when the conflicts were on record.
		if was := r.before(earlier.made.Revision); was != nil && !r.forces(was, later.item) {
			return true
		}
	}
	if is == madeOwners && len(list(earlier.made.Object.Object, "metadata", "managedFields")) == 0 {
		return true // the server has dropped a list with a version that it serves no more
	}
	if is == madeOwners && c.valuesBetween(r, earlier, later) {
		return true
	}
	for _, s := range r.states {
		if s.Revision > earlier.made.Revision && s.Revision < later.made.Revision && later.item < len(s.items) && s.items[later.item].in(api.ItemUnresolved) {
			return true
		}
	}
	// What was re-created without its owner gets the reference when that is back.
	return r.Spec.Changes[later.item].Type == api.Delete && (is == madeValues || is == madeOwners) && c.waitedForOwner(r, later.item)
}

// valuesBetween reports whether an item's values were restored between two writes of its owners:
// they follow the values, which are judged by themselves.
func (c *trial) valuesBetween(r *run, earlier, later *write) bool {
	return slices.ContainsFunc(r.writes, func(w *write) bool {
		return w.made != nil && w.ref == later.ref && w.item == later.item && w.role == later.role && c.effectOf(w) == madeValues &&
			w.made.Revision > earlier.made.Revision && w.made.Revision < later.made.Revision
	})
}

// waitedForOwner reports whether the target of an item was owned by that of another
// Delete.
func (c *trial) waitedForOwner(r *run, i int) bool { return len(c.ownersDeleted(r, i)) > 0 }

// ownersDeleted are the Deletes whose targets owned that of an item. One that comes after it is rolled
// back before it, unless that is refused for a while.
func (c *trial) ownersDeleted(r *run, i int) (deletes []int) {
	s := r.reached(i, api.ItemCommitting)
	if s == nil || s.items[i].before == nil {
		return nil
	}
	v := c.objects[r.Items[i]].named(s.items[i].before.version)
	if v == nil {
		return nil
	}
	for _, e := range list(v.Object.Object, "metadata", "ownerReferences") {
		owner, _ := e.(map[string]any)
		for j, of := range r.end().items {
			if j != i && of.before != nil && r.Spec.Changes[j].Type == api.Delete && of.before.uid == str(owner, "uid") {
				deletes = append(deletes, j)
			}
		}
	}
	return deletes
}
