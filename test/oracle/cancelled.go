package oracle

import (
	"slices"

	api "janus.io/janus/api/v1alpha1"
)

// judgeCancelled: a Transaction that is deleted while it makes its changes, and is to be
// rolled back then, goes only when it was. One that was about to end anyway may go before
// its end is on record.
func (c *trial) judgeCancelled(r *run) {
	s := r.end()
	if s == nil || r.gone == nil || !s.deleting {
		return
	}
	open := slices.ContainsFunc(s.items, func(i item) bool {
		return i.in(api.ItemCommitting, api.ItemCommitted, api.ItemRollingBack)
	})
	switch api.Phase(s.phase) {
	case api.PhaseCommitting:
		if r.Spec.OnDelete == api.DeleteRollback && open && !r.finished(s) {
			c.breach(Atomicity, "%s: it was deleted while it was Committing, with onDelete Rollback, and went (@%d) with %s", r, r.gone.Revision, s.states())
		}
	case api.PhaseRollingBack:
		if open {
			c.breach(Atomicity, "%s: it was deleted while it was RollingBack, and went (@%d) with %s", r, r.gone.Revision, s.states())
		}
	}
}

// judgeAdmitted: nothing is prepared that is on its way out. It could not be restored.
func (c *trial) judgeAdmitted(r *run) {
	for i := range r.Items {
		s := r.imaged(i)
		if s == nil {
			continue
		}
		if v := c.objects[r.Items[i]].named(s.items[i].before.version); v != nil && !v.Deleted && v.terminating() {
			c.breach(DurableIntent, "%s: it is Prepared (@%d), and %s@%d was being deleted", r.named(i), s.Revision, v.Ref, v.Revision)
		}
	}
}

// judgeKept: an object with before-images outlives a foreground deletion of its
// Transaction until Janus lets it go.
func (c *trial) judgeKept(r *run) {
	seen := map[string]bool{}
	for _, s := range r.states {
		for _, name := range s.images {
			if !seen[name] {
				seen[name] = true
				c.judgeImagesKept(r, c.objects[imageRef(r.Namespace, name)])
			}
		}
	}
}

func (c *trial) judgeImagesKept(r *run, o *object) {
	for _, v := range o.all() {
		if v.before == nil && v.by != nil && !v.Deleted && !slices.Contains(list(v.Object.Object, "metadata", "finalizers"), any(imageFinalizer)) {
			c.breach(DurableIntent, "%s: its before-images %s@%d have no finalizer: they go when it is deleted in the foreground", r, v.Ref, v.Revision)
		}
	}
}
