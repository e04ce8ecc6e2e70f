package oracle

import (
	"strings"

	"janus.io/janus/test/faultinject"
)

// enterWrites finds out which versions Janus has made: those that the answer to a
// request of Janus shows, unless the request has changed nothing and the answer
// shows what it met.
func (c *trial) enterWrites() {
	var unknown []*write
	for i := range c.Calls {
		call := &c.Calls[i]
		if call.Kind != faultinject.Write || call.DryRun {
			continue
		}
		switch {
		case call.Landed():
			w := &write{Call: call, ref: refOf(call), sent: skim(call.Body), answer: skim(call.Answer), item: -1}
			if call.Method == "POST" && w.ref.Name == "" {
				w.ref.Name = w.sent.name // the line does not read protobuf
			}
			if w.ref.Name == "" && call.Method == "POST" {
				continue // a review, not an object
			}
			c.writes = append(c.writes, w)
			c.attribute(w)
		case call.Code == 0 && mayHaveLanded(call):
			unknown = append(unknown, &write{Call: call, ref: refOf(call), sent: skim(call.Body), item: -1})
		}
	}
	for _, w := range unknown {
		if c.attributeUnanswered(w) {
			c.writes = append(c.writes, w)
		}
	}
	for _, o := range c.objects {
		for _, v := range o.versions {
			v.ownEnd = v.Deleted && v.by == nil && v.endedBy() != nil
		}
	}
}

// endedBy returns the request of Janus that has put an object on its way out; nil if
// that was another client, or it is not.
func (v *version) endedBy() *write {
	if v.Deleted {
		v = v.before
	}
	for ; v.terminating(); v = v.before {
		if !v.before.terminating() {
			if v.by != nil && v.by.Method == "DELETE" {
				return v.by
			}
			return nil
		}
	}
	return nil
}

// attribute finds the version that a request has made.
func (c *trial) attribute(w *write) {
	o := c.objects[w.ref]
	if o == nil {
		return
	}
	if w.Method == "DELETE" {
		c.attributeDeletion(w, o)
		return
	}
	if w.answer.version != "" && w.answer.version == w.sent.version && w.Method != "POST" {
		// It met this version and left it as it was. Only the last finalizer of an
		// object may have gone with the object.
		c.attributeEnd(w, o)
		return
	}
	v := o.named(w.answer.version)
	switch {
	case v == nil, v.Deleted:
		c.attributeEnd(w, o)
	case v.by == nil && v.uid == w.answer.uid:
		v.by, w.made = w, v
	}
}

// attributeEnd finds the end of an object whose last finalizer a request has
// removed.
func (c *trial) attributeEnd(w *write, o *object) {
	if !w.sent.finalizers || !w.answer.deleting {
		return
	}
	for _, v := range o.versions {
		if v.Deleted && v.by == nil && v.before != nil && v.uid == w.answer.uid &&
			(w.sent.version == "" || v.before.resourceVersion() == w.sent.version) {
			v.by, w.made = w, v
			return
		}
	}
}

// attributeDeletion finds the version with which an object is on its way out, or its
// end.
func (c *trial) attributeDeletion(w *write, o *object) {
	if w.answer.kind != "Status" && w.answer.version != "" && w.answer.version != w.sent.preVers {
		if v := o.named(w.answer.version); v != nil && !v.Deleted && v.by == nil && v.uid == w.answer.uid {
			v.by, w.made = w, v
			return
		}
	}
	for _, v := range o.versions {
		if !v.Deleted || v.by != nil || v.before == nil || v.before.terminating() {
			continue
		}
		sameUID := w.sent.preUID == v.uid || w.sent.preUID == "" && (w.answer.uid == "" || w.answer.uid == v.uid)
		if sameUID && (w.sent.preVers == "" || v.before.resourceVersion() == w.sent.preVers) {
			v.by, w.made = w, v
			return
		}
	}
}

// mayHaveLanded reports whether a request without an answer may have reached the
// API server.
func mayHaveLanded(call *faultinject.Call) bool {
	switch call.Fault {
	case faultinject.CrashBefore, faultinject.Conflict, faultinject.TooMany, faultinject.Failed, faultinject.Starting, faultinject.Started:
		return false
	default:
		return call.FieldManager != ""
	}
}

// attributeUnanswered finds the version that a request has made whose answer was
// lost on the way: one that follows what the request was to meet, and that bears its
// field manager where the one before did not.
func (c *trial) attributeUnanswered(w *write) bool {
	o := c.objects[w.ref]
	if o == nil {
		return false
	}
	for _, v := range o.versions {
		if v.by != nil || v.Deleted {
			continue
		}
		met := ""
		if v.before != nil {
			met = v.before.resourceVersion()
		}
		if met != w.sent.version || w.Method == "POST" && v.before != nil {
			continue
		}
		was := ""
		if v.before != nil {
			was = signature(v.before, w.FieldManager)
		}
		if now := signature(v, w.FieldManager); now != "" && now != was {
			v.by, w.made = w, v
			return true
		}
	}
	return false
}

// signature is what managedFields say about a manager, but for which fields.
func signature(v *version, manager string) string {
	list, _ := at(v.Object.Object, "metadata", "managedFields").([]any)
	var out strings.Builder
	for _, e := range list {
		entry, _ := e.(map[string]any)
		if str(entry, "manager") == manager {
			out.WriteString(str(entry, "operation") + str(entry, "subresource") + str(entry, "time") + ";")
		}
	}
	return out.String()
}
