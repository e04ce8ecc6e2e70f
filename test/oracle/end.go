package oracle

import api "janus.io/janus/api/v1alpha1"

// judgeEnd: every Transaction ends, or is gone when it was deleted.
func (c *trial) judgeEnd(r *run) {
	s := r.end()
	switch {
	case s == nil:
		c.breach(Termination, "%s was never seen", r)
	case r.gone != nil:
	case s.deleting && onlyOurs(s):
		c.breach(Termination, "%s was deleted and is still there (@%d, %s)", r, s.Revision, s.phase)
	case !ended(s.phase):
		c.breach(Termination, "%s is %q at the end (@%d), with %s", r, s.phase, s.Revision, s.states())
	case !s.completed:
		c.breach(Termination, "%s is %s (@%d) and has no completionTime", r, s.phase, s.Revision)
	}
}

// onlyOurs reports whether nobody but Janus keeps a Transaction from going.
func onlyOurs(s *state) bool {
	for _, f := range list(s.Object.Object, "metadata", "finalizers") {
		if f != api.Finalizer {
			return false
		}
	}
	return true
}

// Bound is how many requests Janus may make for some items after the last fault until
// all Transactions have ended: the discovery of a new process, and for each item some
// forty requests to do, observe and undo it, each of them repeated a few times, or as
// long as it waits for others; and as many again for each of its recoveries.
func Bound(items int) int { return 1000 + 800*items }

// judgeBound: that takes a bounded number of requests.
func (c *trial) judgeBound() {
	items := 0
	for _, r := range c.runs {
		items += len(r.Items)
	}
	if bound := Bound(items) * max(1, c.Processes); c.CallsSinceFault > bound {
		c.breach(Termination, "%d requests were made after the last fault for %d items, more than %d", c.CallsSinceFault, items, bound)
	}
}
