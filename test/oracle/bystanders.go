package oracle

import (
	api "janus.io/janus/api/v1alpha1"
)

// judgeBystanders: undoing a creation deletes nothing that is older than the
// Transaction, though the object has come to own it: the garbage collector would. What it
// came to own after the compensation had begun cannot be known to who looks before.
func (c *trial) judgeBystanders(r *run) {
	for i := range min(len(r.Items), len(r.Spec.Changes)) {
		from := r.reached(i, api.ItemRollingBack)
		if r.Spec.Changes[i].Type != api.Create || from == nil {
			continue
		}
		owner := c.objects[r.Items[i]]
		if made := owner.at(from.Revision + 1); made != nil && made.made(r) {
			c.judgeAdopted(r, i, from, made.uid, owner.endOf(made.uid))
		}
	}
}

// judgeAdopted looks for what went with an object after its end.
func (c *trial) judgeAdopted(r *run, i int, from *state, uid string, end *version) {
	if end == nil {
		return
	}
	for ref, o := range c.objects {
		if c.own[ref] || len(c.targets[ref]) > 0 {
			continue
		}
		for _, gone := range o.versions {
			if !gone.Deleted || gone.Revision < end.Revision || gone.by != nil && !gone.by.of(r) || !gone.ownedBy(uid) {
				continue
			}
			if was := o.at(from.Revision + 1); was != nil && was.uid == gone.uid && was.ownedBy(uid) && gone.first().Revision < r.states[0].Revision {
				c.breach(Bystanders, "%s: rolled back, it took %s@%d along, which was there before the Transaction, and adopted by then (@%d)",
					r.named(i), ref, gone.Revision, was.Revision)
			}
		}
	}
}

// frees reports whether a write takes an object from what a creation has made, which comes
// to own it: its reference to that goes, or what lies between is deleted and held.
func (c *trial) frees(w *write) bool {
	was := w.made
	if was != nil {
		was = was.before
	}
	if was == nil || w.Method != "PATCH" && w.Method != "DELETE" {
		return false
	}
	for _, r := range c.runs {
		for i := range min(len(r.Items), len(r.Spec.Changes)) {
			for _, owner := range c.objects[r.Items[i]].all() {
				if r.Spec.Changes[i].Type == api.Create && r.user == w.User && was.ownedBy(owner.uid) && owner.terminating() {
					return true
				}
			}
		}
	}
	return false
}

// endOf is the end of the object with a uid; nil if it is there.
func (o *object) endOf(uid string) *version {
	for _, v := range o.all() {
		if v.Deleted && v.uid == uid {
			return v
		}
	}
	return nil
}

// first is the version in which an object was made.
func (v *version) first() *version {
	for v.before != nil {
		v = v.before
	}
	return v
}

// ownedBy reports whether an object names an owner.
func (v *version) ownedBy(uid string) bool {
	for _, reference := range list(v.Object.Object, "metadata", "ownerReferences") {
		if owner, _ := reference.(map[string]any); owner["uid"] == uid {
			return true
		}
	}
	return false
}
