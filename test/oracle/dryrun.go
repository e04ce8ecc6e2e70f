package oracle

import api "janus.io/janus/api/v1alpha1"

// judgeDryRun: a Transaction that is to be tried only changes nothing, and takes nothing
// that it would have to give back. Only such a Transaction is Planned.
func (c *trial) judgeDryRun(r *run) {
	for _, s := range r.states {
		switch planned := s.phase == string(api.PhasePlanned); {
		case planned && !r.Spec.DryRun:
			c.breach(Atomicity, "%s is Planned (@%d), and was to be carried out", r, s.Revision)
		case !r.Spec.DryRun:
		case s.finalizer:
			c.breach(NothingLeft, "%s is to be tried only, and has the finalizer %s (@%d)", r, api.Finalizer, s.Revision)
		case len(s.images) > 0:
			c.breach(NothingLeft, "%s is to be tried only, and has before-images (@%d)", r, s.Revision)
		}
	}
	if !r.Spec.DryRun {
		return
	}
	for _, w := range r.writes {
		c.breach(Atomicity, "%s is to be tried only, and %s landed on %s", r, w.At, w.ref)
	}
	for ref, o := range c.objects {
		for _, v := range o.versions {
			if isLock(ref) && !v.Deleted && lease(v).heldBy(r) {
				c.breach(LockExclusion, "%s is to be tried only, and holds %s@%d", r, ref, v.Revision)
			}
		}
	}
}
