package oracle

import (
	"encoding/json"
	"slices"
	"time"
)

// How a Lease says that several share it.
const (
	sharedHolder = "janus.io/shared"
	sharedBy     = "janus.io/shared-by"
	wantedBy     = "janus.io/wanted-by"
)

// readShared reads who shares a Lease, and who is next.
func (h *held) readShared(v *version) {
	type entry struct {
		Holder, Over string
		Seconds      int64
		Renewed      time.Time
	}
	as := func(e entry) held {
		return held{holder: e.Holder, renewed: e.Renewed, duration: time.Duration(e.Seconds) * time.Second, over: e.Over}
	}
	annotations, _ := at(v.Object.Object, "metadata", "annotations").(map[string]any)
	list, _ := annotations[sharedBy].(string)
	var readers []entry
	if h.holder != sharedHolder || json.Unmarshal([]byte(list), &readers) != nil {
		return
	}
	h.readers = []held{}
	for _, e := range readers {
		h.readers = append(h.readers, as(e))
	}
	waiting, _ := annotations[wantedBy].(string)
	var next entry
	if json.Unmarshal([]byte(waiting), &next) == nil && next.Holder != "" {
		who := as(next)
		h.next = &who
	}
}

// among returns the reader of an identity.
func (h held) among(identity string) *held {
	i := slices.IndexFunc(h.readers, func(r held) bool { return r.holder == identity })
	if i < 0 {
		return nil
	}
	return &h.readers[i]
}

// judgeJoining holds what was written into a shared Lease against what was in it.
func (c *trial) judgeJoining(v *version) {
	was, is := lease(v.before), lease(v)
	if was.readers == nil || is.readers == nil {
		return
	}
	if is.transitions != was.transitions {
		return // It was taken over from readers by a reader, which judgeTakeover cannot tell from a renewal.
	}
	var joined *held
	for i := range is.readers {
		switch before := was.among(is.readers[i].holder); {
		case before != nil && before.over == is.readers[i].over:
		case joined != nil:
			c.breach(LockExclusion, "%s@%d has two readers more or renewed: %s and %s", v.Ref, v.Revision, joined.holder, is.readers[i].holder)
		default:
			joined = &is.readers[i]
		}
	}
	if joined == nil || was.among(joined.holder) != nil || was.next == nil || was.next.holder == joined.holder {
		return
	}
	// A reader that joins has taken who waits to have it alone for gone, like the holder of a Lease.
	c.judgeTakenFrom(*was.next, *joined, v)
}

// judgeTakenOut: nobody takes a Transaction that is at work out of the list of those that share a lock.
func (c *trial) judgeTakenOut(r *run, w *write) {
	if w.Method != "PUT" || w.made == nil || !isLock(w.ref) || w.made.before == nil {
		return
	}
	was, is := lease(w.made.before), lease(w.made)
	if is.readers == nil || is.transitions != was.transitions || !was.heldBy(r) || is.heldBy(r) {
		return
	}
	if s := r.before(w.made.Revision); s != nil && r.atWork(s) && r.gone == nil && !c.moved(r, w) {
		c.breach(LockExclusion, "%s: it was taken out of the shared lock %s@%d by %s while it was %s (@%d) with %s", r, w.ref, w.made.Revision, w.At, s.phase, s.Revision, s.states())
	}
}
