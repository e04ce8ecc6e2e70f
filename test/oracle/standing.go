package oracle

import api "janus.io/janus/api/v1alpha1"

// standing is what a target ought to be when a Transaction has been rolled back.
type standing struct {
	base *version // before the first write; nil if it was not there
	want map[string]any
	// written tells whether others have written values since, replaced whether they have
	// deleted it or made it, remade whether the object is another by now.
	written, replaced, remade bool
	// meddled is what others have done since to who owns its fields.
	meddled meddling
	// either are fields of which nobody can tell whether they are to be restored.
	either []string
}

// standing follows what others have done to a target since the first write of a
// Transaction; ok is false if it has written nothing.
func (c *trial) standing(r *run, o *object) (standing, bool) {
	if o == nil {
		return standing{}, false
	}
	first := 0
	for ; first < len(o.versions) && !o.versions[first].of(r); first++ {
	}
	if first == len(o.versions) {
		return standing{}, false
	}
	w := walk{trial: c, run: r, object: o, ours: map[string]bool{}, then: map[int64]standing{}}
	w.base = o.versions[first].before
	if as := w.perhapsDeleted(o.versions[:first]); as != nil {
		w.base = as
	}
	w.want = c.merged(w.base)
	w.mark(w.base)
	for _, v := range o.versions[first:] {
		w.step(v)
		w.mark(v)
	}
	return w.standing, true
}

// walk goes from version to version of a target.
type walk struct {
	*trial
	run     *run
	object  *object
	ours    map[string]bool    // the uids of what changes have made, or what was re-created of it
	between *standing          // what it was before others made an object in its place
	then    map[int64]standing // by revision
	standing
}

// mark keeps what the target ought to be like at a version.
func (w *walk) mark(v *version) {
	if v != nil {
		w.then[v.Revision] = w.standing
	}
}

func (w *walk) step(v *version) {
	switch {
	case v.of(w.run):
		w.between = nil // What the Transaction writes to it has taken for its own.
		if by := v.by; by != nil && by.Method == "POST" && by.item >= 0 {
			before := w.run.imageOf(by.item)
			w.ours[v.uid] = by.role == do || before != nil && w.ours[before.uid]
		}
	case v.terminating() && v.endedBy().of(w.run) && !v.Deleted, v.Deleted && w.bereaved(w.run, v):
	case v.Deleted:
		w.deleted(v)
	case v.before == nil:
		was := w.standing
		w.between = &was
		w.replaced, w.written = true, true
		w.want, w.base = w.merged(v), nil
	default:
		w.meddled = w.meddled.and(v)
		if !w.ours[v.uid] {
			w.changed(v)
		}
	}
}

// deleted deals with a deletion by another client.
func (w *walk) deleted(v *version) {
	if w.between != nil {
		w.standing, w.between = *w.between, nil
	} else if before := perhapsOwn(w.run, w.object, v); before != nil {
		if then, seen := w.then[before.Revision]; seen {
			w.standing = then
		}
	} else if !w.ours[v.uid] && !remadeByAnother(w.run, w.object, v) {
		w.want = nil
	}
	w.replaced, w.written = true, true
}

// changed deals with a write by another client.
func (w *walk) changed(v *version) {
	found := append(differences(w.merged(v.before), w.merged(v)), w.claims(v)...)
	if len(found) == 0 {
		// They may have put a list into another order.
		w.written = w.written || !same(v.before.content(), v.content())
		return
	}
	w.written, w.want = true, copied(w.want)
	unclear := w.unclear(v)
	origin := v.restoresTo()
	for _, d := range found {
		if reachesAny(d.path, unclear) || d.now == nil && w.removedBefore(w.run, v, d.path) {
			w.either = append(w.either, dotted(d.path))
			continue
		}
		wanted := d.now
		if then, seen := w.then[revisionOf(origin)]; origin != nil && seen && same(valueIn(w.merged(origin), d.path), d.now) {
			wanted = valueIn(then.want, d.path)
		}
		w.want = with(w.want, d.path, wanted)
	}
}

// restoresTo returns the version that another Transaction met before its first change of
// an object, if this one is of its rollback: what that puts back is whose it was then.
func (v *version) restoresTo() *version {
	if v.by == nil || v.by.role != undo {
		return nil
	}
	for _, w := range v.by.run.writes {
		if w.ref == v.Ref && w.role == do && w.made != nil && w.made.uid == v.uid {
			return w.made.before
		}
	}
	return nil
}

// unclear lists the fields of the changes, if they were being rolled back for a second
// time around a version.
func (w *walk) unclear(v *version) []change {
	again := w.repeatedAround(w.run, w.object, v)
	if again == nil {
		return nil
	}
	return w.changedBy(w.run, again)
}

// perhapsDeleted returns what the target was when it was prepared, if another client deleted
// it before the first write of the Transaction, which was to re-create it.
func (w *walk) perhapsDeleted(before []*version) *version {
	for _, v := range before {
		if v.Deleted {
			if as := perhapsOwn(w.run, w.object, v); as != nil {
				return as
			}
		}
	}
	return nil
}

// perhapsOwn returns the target as it was prepared for a Delete, and was re-created in
// the rollback, if it was another client who deleted it. Of a request that got no
// answer nobody can tell then whether that was its doing.
func perhapsOwn(r *run, o *object, deleted *version) *version {
	for _, v := range o.versions {
		w := v.by
		if !w.of(r) || w.role != undo || w.Method != "POST" || w.item < 0 || v.Revision < deleted.Revision || r.Spec.Changes[w.item].Type != api.Delete {
			continue
		}
		if before := r.imageOf(w.item); before != nil && before.uid == deleted.uid {
			return o.named(before.version)
		}
	}
	return nil
}

// imageOf is what the status says of the before-image of an item. Of one that deletes its target instead it
// is the one that was saved for the deletion.
func (r *run) imageOf(i int) *image {
	for _, s := range r.states {
		if i < len(r.at) && r.at[i] != nil && s.Revision < r.at[i].Revision {
			continue
		}
		if i < len(s.items) && s.items[i].before != nil {
			return s.items[i].before
		}
	}
	return nil
}

// of reports whether a Transaction has made a version, also one in which an object
// that it had deleted was gone at last.
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
