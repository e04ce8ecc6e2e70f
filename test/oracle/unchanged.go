package oracle

// judgeUnchanged: of an item that says that nothing was written for it, no request has written
// anything.
func (c *trial) judgeUnchanged(r *run) {
	s := r.end()
	if s == nil {
		return
	}
	for i := range min(len(s.items), len(r.Items)) {
		if !s.items[i].unchanged {
			continue
		}
		for _, as := range []role{do, undo} {
			for _, w := range r.made(i, as) {
				c.breach(Atomicity, "%s: it says (@%d) that nothing was written for it, and %s made %s@%d", r.named(i), s.Revision, w.At, w.ref, w.made.Revision)
			}
		}
	}
}
