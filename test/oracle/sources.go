package oracle

import (
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
)

// The reasons that speak of a source.
const (
	contentChanged = "ContentChanged"
	contentMissing = "ContentMissing"
)

// sourceOf is the object that holds the content of a change.
func (r *run) sourceOf(i int) (Ref, *api.ContentSource) {
	changes := r.Spec.Changes
	if i < len(r.asked) {
		changes = r.asked // What deletes its target instead had a content too.
	}
	from := changes[i].ContentFrom
	if from == nil || r.Spec.UndoOf != nil {
		return Ref{}, nil
	}
	resource := "configmaps"
	if from.Confidential() {
		resource = "secrets"
	}
	return Ref{Resource: resource, Namespace: r.Namespace, Name: from.Ref().Name}, from
}

// pin is the digest of the content of an item, and the state that has recorded it first; nil if
// none has. Each plan that is to be approved has one of its own, and that of one which does not
// stand any more counts for nothing.
func (r *run) pin(i int) (string, *state) {
	var by *state
	for _, s := range r.states {
		switch {
		case s.approval.plans > 0 && s.approval.digest == "":
			by = nil
		case i < len(s.items) && s.items[i].content != "" && (by == nil || s.approval.plans > by.approval.plans):
			by = s
		}
	}
	if by == nil {
		return "", nil
	}
	return by.items[i].content, by
}

// enterSources finds the contents that are in sources: those with the digest that the status
// records.
func (c *trial) enterSources(r *run) {
	for i := range r.Spec.Changes {
		ref, from := r.sourceOf(i)
		pinned, _ := r.pin(i)
		if from == nil || pinned == "" {
			continue
		}
		for _, v := range c.objects[ref].all() {
			if data, ok := v.holds(from.Ref().Key); ok && pinOf(v, data) == pinned {
				r.contents[i] = decoded(data)
				break
			}
		}
	}
}

// judgeSources: what the source of a change held when the Transaction was accepted is on record
// as a digest that stays, and nothing else is applied, whatever becomes of the source. What is
// said of a source is so.
func (c *trial) judgeSources(r *run) {
	for i := range r.Spec.Changes {
		ref, from := r.sourceOf(i)
		if from == nil {
			continue
		}
		pinned, by := r.pin(i)
		if by == nil {
			if opened := r.reached(i, api.ItemCommitting); opened != nil {
				c.breach(DurableIntent, "%s: its intent is recorded (@%d) without the digest of its content", r.named(i), opened.Revision)
			}
			continue
		}
		for _, s := range r.states {
			if s.Revision > by.Revision && s.by != nil && i < len(s.items) && s.items[i].content != pinned {
				c.breach(DurableIntent, "%s: the digest of its content went from %s (@%d) to %q (@%d)", r.named(i), pinned, by.Revision, s.items[i].content, s.Revision)
			}
		}
		c.judgePin(r, i, ref, from)
		for _, w := range r.made(i, do) {
			if r.Spec.Changes[i].Type != api.Delete && !w.made.Deleted && !c.hasContent(r, i, w.made, r.end()) {
				c.breach(Atomicity, "%s: %s@%d, made by %s, does not have the content with the digest %s", r.named(i), w.ref, w.made.Revision, w.At, pinned)
			}
		}
	}
	c.judgeSaid(r)
	c.judgeReaders(r)
}

// judgePin: the digest is that of a content which the source held before, and which the spec
// allows. That of a Secret is keyed with the uid of the Secret.
func (c *trial) judgePin(r *run, i int, ref Ref, from *api.ContentSource) {
	pinned, by := r.pin(i)
	for _, v := range c.objects[ref].all() {
		data, ok := v.holds(from.Ref().Key)
		if !ok || v.Revision >= by.Revision || pinOf(v, data) != pinned {
			continue
		}
		if from.Digest != "" && digest(string(data)) != from.Digest {
			c.breach(DurableIntent, "%s: it was accepted (@%d) with the content of %s@%d, and the spec demands %s", r.named(i), by.Revision, ref, v.Revision, from.Digest)
		}
		return
	}
	c.breach(DurableIntent, "%s: it was accepted (@%d) with the digest %s, and %s never held content with that digest before", r.named(i), by.Revision, pinned, ref)
}

// judgeSaid: that a source is missing or has changed is said only of one that was missing, or
// held other content, or seemed to by a false answer.
func (c *trial) judgeSaid(r *run) {
	for _, s := range r.states {
		if s.by == nil {
			continue
		}
		reasons := s.reasons()
		if reasons[contentMissing] && !c.anySource(r, s, c.wasMissing) {
			c.breach(Phases, "%s says (@%d) that a source is missing, and none was", r, s.Revision)
		}
		if reasons[contentChanged] && !c.anySource(r, s, c.hasChanged) {
			c.breach(Phases, "%s says (@%d) that a source has changed, and none has", r, s.Revision)
		}
	}
}

// anySource reports whether something is so of a source of a Transaction before a state of it.
func (c *trial) anySource(r *run, s *state, is func(r *run, i int, before int64) bool) bool {
	for i := range r.Spec.Changes {
		if _, from := r.sourceOf(i); from != nil && is(r, i, s.Revision) {
			return true
		}
	}
	return false
}

// wasMissing reports whether a source, or its key, was missing at some time after the Transaction
// was created, or was denied.
func (c *trial) wasMissing(r *run, i int, before int64) bool {
	ref, from := r.sourceOf(i)
	if c.liedAbout(ref) {
		return true
	}
	there := false // at the time of the version that is looked at
	for _, v := range c.objects[ref].all() {
		if v.Revision >= before {
			break
		}
		if v.Revision > r.states[0].Revision && !there {
			return true
		}
		_, there = v.holds(from.Ref().Key)
	}
	return !there
}

// hasChanged reports whether a source held, at any time before, other content than was pinned,
// or than the spec demands.
func (c *trial) hasChanged(r *run, i int, before int64) bool {
	ref, from := r.sourceOf(i)
	pinned, _ := r.pin(i)
	for _, v := range c.objects[ref].all() {
		data, ok := v.holds(from.Ref().Key)
		if ok && v.Revision < before && (pinned != "" && pinOf(v, data) != pinned || from.Digest != "" && digest(string(data)) != from.Digest) {
			return true
		}
	}
	return false
}

// liedAbout reports whether a process was told of an object what was not so.
func (c *trial) liedAbout(ref Ref) bool {
	for i := range c.Calls {
		call := &c.Calls[i]
		if (call.Fault == faultinject.FalseNotFound || call.Fault == faultinject.Stale) && refOf(call) == ref {
			return true
		}
	}
	return false
}

// judgeReaders: a source is read as the ServiceAccount of its Transaction. With its own rights
// Janus reads what was stored for the Transaction alone.
func (c *trial) judgeReaders(r *run) {
	sources := map[Ref]bool{}
	for i := range r.Spec.Changes {
		if ref, from := r.sourceOf(i); from != nil && !api.IsContentObject(ref.Name, r.Name) {
			sources[ref] = true
		}
	}
	if len(sources) == 0 {
		return
	}
	for i := range c.Calls {
		if call := &c.Calls[i]; call.Kind == faultinject.Read && call.User == "" && sources[refOf(call)] {
			c.breach(Identity, "%s: %s reads a source as Janus itself", r, call.At)
		}
	}
}

// reasons are those of the conditions of a Transaction and of its items.
func (s *state) reasons() map[string]bool {
	out := map[string]bool{}
	for _, entry := range list(s.Object.Object, "status", "conditions") {
		condition, _ := entry.(map[string]any)
		out[str(condition, "reason")] = true
	}
	for i := range s.items {
		out[s.items[i].reason] = true
	}
	return out
}

// holds returns what a Secret or a ConfigMap has at a key.
func (v *version) holds(key string) ([]byte, bool) {
	if v.Deleted {
		return nil, false
	}
	if text, ok := at(v.Object.Object, "data", key).(string); ok && v.Ref.Resource == "configmaps" {
		return []byte(text), true
	}
	for _, field := range []string{"data", "binaryData"} {
		if text, ok := at(v.Object.Object, field, key).(string); ok {
			data, err := base64.StdEncoding.DecodeString(text)
			return data, err == nil
		}
	}
	return nil, false
}

// pinOf is the digest by which content of an object is pinned.
func pinOf(v *version, data []byte) string {
	if v.Ref.Resource != "secrets" {
		return digest(string(data))
	}
	mac := hmac.New(sha256.New, []byte(v.uid))
	mac.Write(data)
	return "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil))
}

// decoded is the object that some bytes are; nil if they are none.
func decoded(data []byte) map[string]any {
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil
		}
		if data, err = io.ReadAll(r); err != nil {
			return nil
		}
	}
	var out map[string]any
	if yaml.Unmarshal([]byte(strings.TrimSpace(string(data))), &out) != nil {
		return nil
	}
	return out
}
