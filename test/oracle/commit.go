package oracle

import (
	"encoding/base64"
	"strings"

	api "janus.io/janus/api/v1alpha1"
)

// judgeCommit: Committed means that every change is in effect. Where a failure does not stop the
// others, so does an item that is Committed.
func (c *trial) judgeCommit(r *run) {
	s := r.end()
	if s == nil || s.phase != string(api.PhaseCommitted) && r.endedInPart() == nil {
		return
	}
	for i := range min(len(s.items), len(r.Items)) {
		if !s.items[i].in(api.ItemCommitted) || r.awaits(i) {
			continue // that is for judgePhases
		}
		c.judgeHandedOver(r, i, s)
		from, to := r.reached(i, api.ItemCommitting), r.reached(i, api.ItemCommitted)
		if from == nil || to == nil {
			continue // another client has written the status
		}
		if r.Spec.Changes[i].Type == api.Delete {
			c.judgeDeleted(r, i, from, to)
		} else {
			c.judgeInEffect(r, i, from, to)
		}
	}
}

// reached returns the first state in which an item had come to a state.
func (r *run) reached(i int, state api.ItemState) *state {
	for _, s := range r.states {
		if i < len(s.items) && s.items[i].in(state) {
			return s
		}
	}
	return nil
}

// imaged is the first state that has a before-image of an item.
func (r *run) imaged(i int) *state {
	for _, s := range r.states {
		if i < len(s.items) && s.items[i].before != nil {
			return s
		}
	}
	return nil
}

// made returns what the requests of an item have made in a role.
func (r *run) made(i int, as role) []*write {
	var out []*write
	for _, w := range r.writes {
		if w.item == i && w.role == as && w.made != nil {
			out = append(out, w)
		}
	}
	return out
}

// judgeInEffect: right after it was made, a change is to be seen on its target. One
// that was not sent, or that changed nothing, is to be seen on what was there while
// its intent was open.
func (c *trial) judgeInEffect(r *run, i int, from, to *state) {
	dos := r.made(i, do)
	for _, w := range dos {
		if w.made.Deleted || !c.hasContent(r, i, w.made, to) {
			c.breach(Atomicity, "%s: it is Committed, and %s@%d, made by %s, does not have its content", r.named(i), w.ref, w.made.Revision, w.At)
		}
	}
	o := c.objects[r.Items[i]]
	if len(dos) > 0 {
		return
	}
	if v := o.at(from.Revision); v != nil && c.hasContent(r, i, v, to) {
		return
	}
	for _, v := range o.all() {
		if v.Revision > from.Revision && v.Revision < to.Revision && !v.Deleted && c.hasContent(r, i, v, to) {
			return
		}
	}
	c.breach(Atomicity, "%s: it is Committed (@%d), and nothing that was stored of %s since @%d has its content", r.named(i), to.Revision, r.Items[i], from.Revision)
}

// judgeDeleted: what was to be deleted is gone when that is recorded.
func (c *trial) judgeDeleted(r *run, i int, from, to *state) {
	o := c.objects[r.Items[i]]
	now := o.at(to.Revision)
	if now == nil {
		return
	}
	uid := ""
	if before := to.items[i].before; before != nil {
		uid = before.uid
	}
	if was := o.at(from.Revision); uid == "" && was != nil {
		uid = was.uid
	}
	if now.uid == uid {
		c.breach(Atomicity, "%s: it is Committed (@%d), and %s@%d (uid %s) is still there", r.named(i), to.Revision, now.Ref, now.Revision, now.uid)
	}
}

// hasContent reports whether an object has the content of a change, but for what a state
// of the Transaction says was not stored.
func (c *trial) hasContent(r *run, i int, v *version, by *state) bool {
	asked := stored(signed(r, i, askedFor(r.contents[i], v.Ref)), &by.items[i])
	return c.hasAll(r, i, v, asked) || c.hasStep(r, i, v, asked, by)
}

func (c *trial) hasAll(r *run, i int, v *version, asked map[string]any) bool {
	if !holds(map[string]any(v.Object.Object), asked) {
		return false
	}
	if r.Spec.Changes[i].Type != api.Update {
		return true
	}
	// An Update also leaves nothing that its content does not name. What the server
	// adds by itself it adds elsewhere.
	meta, _ := asked["metadata"].(map[string]any)
	for _, name := range []string{"labels", "annotations"} {
		wanted, _ := c.parts("", meta[name]).(map[string]any)
		found, _ := at(c.merged(v), "metadata", name).(map[string]any)
		if len(c.notAdmitted(differences(wanted, found), "metadata", name)) > 0 {
			return false
		}
	}
	if !plainData(v.Ref) {
		return true
	}
	wanted, _ := c.parts("", asked["data"]).(map[string]any)
	found, _ := c.merged(v)["data"].(map[string]any)
	return len(c.notAdmitted(differences(wanted, found), "data")) == 0
}

// plainData reports whether a kind has data in which the server writes nothing.
func plainData(ref Ref) bool { return ref.Resource == "configmaps" || ref.Resource == "secrets" }

// askedFor is the content of a change without what names the target, and as the
// server stores it.
func askedFor(content map[string]any, ref Ref) map[string]any {
	out := make(map[string]any, len(content))
	for name, v := range content {
		switch name {
		case "apiVersion", "kind", "status":
		case "metadata":
			meta, _ := v.(map[string]any)
			kept := make(map[string]any, len(meta))
			for key, inner := range meta {
				if key != "name" && key != "namespace" {
					kept[key] = inner
				}
			}
			out[name] = kept
		default:
			out[name] = v
		}
	}
	if plain, ok := out["stringData"].(map[string]any); ok && ref.Resource == "secrets" {
		delete(out, "stringData")
		data := map[string]any{}
		old, _ := out["data"].(map[string]any)
		for key, v := range old {
			data[key] = v
		}
		for key, v := range plain {
			text, _ := v.(string)
			data[key] = base64.StdEncoding.EncodeToString([]byte(text))
		}
		out["data"] = data
	}
	return out
}

// judgeHandOver: a hand-over changes who owns fields, as it ought to, and no field.
func (c *trial) judgeHandOver(r *run) {
	for _, w := range r.writes {
		if w.role != handOver || w.made == nil {
			continue
		}
		if w.made.Deleted {
			c.breach(Atomicity, "%s: the hand-over %s ended %s@%d", r, w.At, w.ref, w.made.Revision)
			continue
		}
		if found := c.notAdmitted(differences(w.made.before.content(), w.made.content())); len(found) > 0 {
			c.breach(Atomicity, "%s: the hand-over %s changed %s in %s@%d", r, w.At, found[0], w.ref, w.made.Revision)
		}
		c.judgeNewOwners(r, w)
	}
}

// judgeHandedOver: the manager of an item is gone from its target when the
// Transaction has ended, unless it says that it could not be taken off. One that the
// Transaction has made may keep it: to create takes no right to patch. So may one that it deletes, and
// that is not gone yet.
func (c *trial) judgeHandedOver(r *run, i int, s *state) {
	v := c.objects[r.Items[i]].at(s.Revision)
	if v == nil || v.made(r) || r.managerStays(s, r.Items[i]) || v.terminating() && r.deletes(s, r.Items[i]) {
		return
	}
	for _, e := range list(v.Object.Object, "metadata", "managedFields") {
		entry, _ := e.(map[string]any)
		if manager := str(entry, "manager"); strings.HasPrefix(manager, r.family()) {
			c.breach(NothingLeft, "%s: it is Committed (@%d), and %s@%d still has the field manager %s", r.named(i), s.Revision, v.Ref, v.Revision, manager)
		}
	}
}

// made reports whether a Transaction has made an object.
func (v *version) made(r *run) bool {
	for v.before != nil {
		v = v.before
	}
	return v.of(r)
}

// deletes reports whether a Delete of a target is in effect in a state.
func (r *run) deletes(s *state, target Ref) bool {
	for i := range min(len(s.items), len(r.Items)) {
		if r.Items[i] == target && r.Spec.Changes[i].Type == api.Delete && s.items[i].committed {
			return true
		}
	}
	return false
}

// managerStays reports whether a Transaction says that its field managers stay on a
// target. The last item says it when the time is over for all.
func (r *run) managerStays(s *state, target Ref) bool {
	for i := range min(len(s.items), len(r.Items)) {
		if (r.Items[i] == target || i == len(s.items)-1) && (s.items[i].reason == "ManagerStays" || strings.Contains(s.items[i].message, "fields not handed over")) {
			return true
		}
	}
	return false
}
