package oracle

// judgeWhole: the history has what the answers to Janus show, in order.
func (c *trial) judgeWhole() {
	for i := 1; i < len(c.History); i++ {
		if c.History[i].Revision < c.History[i-1].Revision {
			c.breach(Whole, "the history is not in order: %s@%d comes after @%d", c.History[i].Ref, c.History[i].Revision, c.History[i-1].Revision)
			break
		}
	}
	for _, w := range c.writes {
		if w.made != nil || len(c.targets[w.ref]) == 0 && !c.own[w.ref] {
			continue
		}
		changed := w.answer.version != "" && w.answer.version != w.sent.version && w.Method != "DELETE" || w.Method == "POST"
		if changed && !w.answer.deleting && c.objects[w.ref].named(w.answer.version) == nil {
			c.breach(Whole, "%s made %s@%s, which the history lacks", w.At, w.ref, w.answer.version)
		}
	}
}
