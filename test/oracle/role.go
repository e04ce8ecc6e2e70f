package oracle

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	api "janus.io/janus/api/v1alpha1"
)

// role is what a write to a target is for.
type role int

const (
	stray role = iota // nothing that the protocol has
	do
	undo
	handOver
	// sparing keeps what a creation has made, or lets it go, until what it has adopted is
	// free of it.
	sparing
)

func (r role) String() string {
	return [...]string{"stray write", "do", "undo", "hand-over", "sparing"}[r]
}

// defaultManager is the field manager of hand-overs.
const defaultManager = "janus"

// roleIn says what a request of this form is for an item, whatever the item's state:
// the form alone tells a change from its compensation.
func (c *trial) roleIn(w *write, change api.ChangeType) role {
	applies := w.Method == "PATCH" && w.sent.kind != ""
	switch {
	case change == api.Create && w.Method == "POST",
		change == api.Update && w.Method == "PUT",
		change == api.Patch && applies,
		change == api.Delete && w.Method == "DELETE":
		return do
	case change == api.Create && w.Method == "DELETE",
		change == api.Delete && (w.Method == "POST" || w.Method == "PATCH" && !applies),
		(change == api.Update || change == api.Patch) && w.Method == "PATCH" && !applies:
		return undo
	case change == api.Create && w.Method == "PATCH" && !applies && c.spares(w):
		return sparing
	default:
		return stray
	}
}

// spares reports whether a write does no more than to set or take off the finalizer that
// keeps an object until what it has adopted is free.
func (c *trial) spares(w *write) bool {
	if w.made == nil || w.made.before == nil {
		return true // It has done nothing.
	}
	if w.made.Deleted {
		return isHeld(w.made.before)
	}
	found := c.notAdmitted(differences(w.made.before.content(), w.made.content()))
	return len(found) == 1 && dotted(found[0].path) == ".metadata.finalizers" && isHeld(w.made) != isHeld(w.made.before)
}

// holdFinalizer is that finalizer.
const holdFinalizer = "backup.janus.io/spares-adopted"

func isHeld(v *version) bool {
	return slices.Contains(list(v.Object.Object, "metadata", "finalizers"), any(holdFinalizer))
}

// assign finds out whose a write to a target is, and what for.
func (c *trial) assign(w *write) {
	candidates := c.targets[w.ref]
	if len(candidates) == 0 {
		return
	}
	best := -1
	consider := func(r *run, i int, as role) {
		if fit := c.fit(w, r, i, as); fit > best {
			best, w.run, w.item, w.role = fit, r, i, as
		}
	}
	for _, r := range candidates {
		if w.FieldManager == defaultManager && w.Method == "PATCH" {
			consider(r, -1, handOver)
			continue
		}
		if i, ok := r.isItem(w.FieldManager); ok && r.Items[i] == w.ref {
			consider(r, i, c.roleIn(w, r.Spec.Changes[i].Type))
		}
		if w.Method != "DELETE" {
			continue
		}
		for i := range r.Items {
			if r.Items[i] == w.ref && i < len(r.Spec.Changes) {
				consider(r, i, c.roleIn(w, r.Spec.Changes[i].Type))
			}
		}
	}
	if w.run != nil {
		w.run.enter(w)
	}
}

// fit says how well a write goes with a place: a deletion bears no manager, so that
// the states of Transactions and the identity tell whose it is.
func (c *trial) fit(w *write, r *run, i int, as role) int {
	fit := 0
	if w.User == r.user {
		fit++
	}
	if as == stray {
		return fit
	}
	fit += 2
	if w.made == nil {
		return fit
	}
	if s := r.before(w.made.Revision); s != nil && c.allows(s, i, as, r) {
		fit += 4
		if w.Method == "DELETE" {
			fit += c.likely(w, r, i, as, s)
		}
	}
	if as == handOver && hasManager(w.made.before, r.family()) {
		fit++ // Its field managers are there to be taken off.
		if !hasManager(w.made, r.family()) {
			fit++ // They were.
		}
	}
	if w.Method == "DELETE" && as == undo && str(w.made.Object.Object, markPath...) == r.mark(i) {
		fit += 2 // Of several that have made an object of that name, this one has made it.
	}
	return fit
}

// likely says how well a deletion goes with a Transaction of several that might have made it.
func (c *trial) likely(w *write, r *run, i int, as role, s *state) int {
	likely := 0
	if c.locked(r, s.items[i].lease, w.made.Revision) {
		likely++ // One makes the change, and another waits to undo its own.
	}
	if next := r.next(s, i); as == do && next != nil && next.items[i].in(api.ItemCommitted) {
		likely += 2 // One says that it has made it, and another may have the lock that was taken from it.
	}
	return likely
}

// hasManager reports whether a field manager of a Transaction is on an object.
func hasManager(v *version, family string) bool {
	return v != nil && slices.ContainsFunc(list(v.Object.Object, "metadata", "managedFields"), func(e any) bool {
		entry, _ := e.(map[string]any)
		return strings.HasPrefix(str(entry, "manager"), family)
	})
}

// mark is by what an object tells that an item has made it.
func (r *run) mark(i int) string { return string(r.UID) + "." + strconv.Itoa(i) }

// enter keeps the writes in the order of what they have made.
func (r *run) enter(w *write) {
	r.writes = append(r.writes, w)
	slices.SortStableFunc(r.writes, func(a, b *write) int { return cmp.Compare(a.place(), b.place()) })
}

func (w *write) place() int64 {
	if w.made == nil {
		return 1 << 62
	}
	return w.made.Revision
}

// allows reports whether a stored Transaction allows a write.
func (c *trial) allows(s *state, i int, as role, r *run) bool {
	switch {
	case as == handOver:
		// What is skipped has nothing to hand over: another Transaction may, of the same object.
		return r.finished(s) && !s.allIn(api.ItemSkipped, api.ItemRejected)
	case i >= len(s.items):
		return false
	case as == do:
		return s.items[i].in(api.ItemCommitting)
	case (as == undo || as == sparing) && s.items[i].in(api.ItemRollingBack):
		return true
	case as == undo && r.Spec.Changes[i].Type == api.Delete && s.items[i].in(api.ItemRolledBack, api.ItemUnresolved):
		// What was re-created gets its owner back when that is re-created.
		return slices.ContainsFunc(c.ownersDeleted(r, i), func(j int) bool { return s.items[j].in(api.ItemRollingBack) })
	}
	return false
}
