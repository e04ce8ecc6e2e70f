package oracle

import (
	"time"

	api "janus.io/janus/api/v1alpha1"
)

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

// Bound is how many requests some processes may make for some items after the last fault until all
// Transactions have ended, for each process: the discovery of a new one, and for each item some forty
// requests to do, observe and undo it, each of them repeated a few times, or as long as it waits for
// others; and as many again for each of its recoveries. While one waits for what it can't bring about,
// such as a finalizer, it looks every two seconds or so. Of two processes that run the same Transaction,
// each looks again whenever the other has written.
func Bound(items, processes int, since time.Duration) int {
	aSecond := 2
	if processes > 1 {
		aSecond = 5
	}
	return (1000 + 800*items + aSecond*int(since.Seconds())) * max(1, processes)
}

// judgeBound: that takes a bounded number of requests.
func (c *trial) judgeBound() {
	items := 0
	for _, r := range c.runs {
		items += len(r.Items)
	}
	if bound := Bound(items, c.Processes, c.SinceFault); c.CallsSinceFault > bound {
		c.breach(Termination, "%d requests were made after the last fault for %d items, more than %d", c.CallsSinceFault, items, bound)
	}
}
