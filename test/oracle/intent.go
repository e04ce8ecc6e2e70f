package oracle

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"

	api "janus.io/janus/api/v1alpha1"
)

// deadlineExceeded is the reason of what was not done in time.
const deadlineExceeded = "DeadlineExceeded"

// judgeIntent: nothing is written to a target but under a stored intent and with a
// saved before-image, and every write says what it must meet.
func (c *trial) judgeIntent(r *run) {
	checked := map[int]bool{}
	for _, w := range r.writes {
		c.judgePrecondition(w)
		if w.made == nil {
			continue
		}
		s := r.before(w.made.Revision)
		what := r.String() + " " + w.role.String()
		if w.item >= 0 {
			what = r.named(w.item) + " " + w.role.String()
		}
		switch {
		case w.role == stray:
			c.breach(DurableIntent, "%s: %s made %s@%d, which is neither the change nor its compensation", what, w.At, w.ref, w.made.Revision)
			continue
		case s == nil:
			c.breach(DurableIntent, "%s: %s made %s@%d before the Transaction was stored", what, w.At, w.ref, w.made.Revision)
			continue
		case r.tampered:
		case c.isLate(w, s):
		case !c.allows(s, w.item, w.role, r):
			c.breach(DurableIntent, "%s: %s made %s@%d while the Transaction (@%d) was %s with %s",
				what, w.At, w.ref, w.made.Revision, s.Revision, s.phase, s.states())
		}
		if w.item >= 0 && w.item < len(s.items) && !checked[w.item] {
			checked[w.item] = true
			c.judgeImage(r, w, s)
		}
	}
}

// isLate reports whether a write is a compensation without an answer that was given up because the
// time of the rollback was over. A server that does not answer is not waited for then.
func (c *trial) isLate(w *write, s *state) bool {
	return w.role == undo && w.Fault != "" && w.item < len(s.items) && s.items[w.item].in(api.ItemUnresolved) && s.items[w.item].reason == deadlineExceeded
}

func (s *state) states() string {
	var out []string
	for i := range s.items {
		out = append(out, s.items[i].state)
	}
	return "items [" + strings.Join(out, " ") + "]"
}

// judgePrecondition: a write says which object it must meet, and that is the one
// that was there.
func (c *trial) judgePrecondition(w *write) {
	uid, meets := w.sent.uid, w.sent.version
	switch w.Method {
	case "POST":
		return
	case "DELETE":
		uid, meets = w.sent.preUID, w.sent.preVers
	}
	if uid == "" || meets == "" {
		c.breach(DurableIntent, "%s landed on %s without a precondition: uid %q, resourceVersion %q", w.At, w.ref, uid, meets)
		return
	}
	if w.made == nil {
		return
	}
	was := w.made.before
	if was == nil || was.uid != uid || was.resourceVersion() != meets {
		c.breach(DurableIntent, "%s landed on %s@%d though it was to meet uid %s at %s, and %s was there", w.At, w.ref, w.made.Revision, uid, meets, was.describe())
	}
}

func (v *version) describe() string {
	if v == nil {
		return "nothing"
	}
	return "uid " + v.uid + " at " + v.resourceVersion()
}

// judgeImage: the before-image of an item was stored, as the status says, before the
// write.
func (c *trial) judgeImage(r *run, w *write, s *state) {
	before := s.items[w.item].before
	if before == nil || before.key == "" || before.digest == "" {
		c.breach(DurableIntent, "%s: %s made %s@%d and the Transaction (@%d) records no before-image", r.named(w.item), w.At, w.ref, w.made.Revision, s.Revision)
		return
	}
	if w.ref.Resource == "secrets" {
		for _, name := range s.images {
			if v := c.objects[imageRef(r.Namespace, name)].at(w.made.Revision); v != nil && v.Ref.Resource != "secrets" {
				if _, open := record(v, before.key); open {
					c.breach(Confidentiality, "%s: the before-image of a Secret is in %s@%d", r.named(w.item), v.Ref, v.Revision)
				}
			}
		}
	}
	if digests := c.stored(r, s, before.key, w.made.Revision); !contains(digests, before.digest) {
		c.breach(DurableIntent, "%s: %s made %s@%d and the before-image %s of digest %s was never stored before that; found %v",
			r.named(w.item), w.At, w.ref, w.made.Revision, before.key, before.digest, digests)
	}
	target := c.objects[w.ref]
	if before.uid == "" || target == nil {
		return
	}
	if v := target.named(before.version); v == nil || v.Deleted || v.uid != before.uid {
		c.breach(DurableIntent, "%s: the before-image is of uid %s at %s, which %s never was", r.named(w.item), before.uid, before.version, w.ref)
	}
}

// stored returns the digests of all that was stored under the key of a before-image
// before a revision.
func (c *trial) stored(r *run, s *state, key string, revision int64) []string {
	var out []string
	for _, name := range s.images {
		ref := imageRef(r.Namespace, name)
		o := c.objects[ref]
		if o == nil {
			continue
		}
		for _, v := range o.versions {
			if v.Revision >= revision || v.Deleted {
				continue
			}
			first, ok := record(v, key)
			if !ok {
				continue
			}
			out = append(out, digest(first+c.furtherParts(r, s, key, revision)))
		}
	}
	return out
}

// furtherParts joins the parts of a record that did not fit one object.
func (c *trial) furtherParts(r *run, s *state, key string, revision int64) string {
	if len(s.images) == 1 {
		return ""
	}
	rest := ""
	for part := 2; ; part++ {
		found := false
		for _, name := range s.images {
			if v := c.objects[imageRef(r.Namespace, name)].at(revision); v != nil && !found {
				text, ok := record(v, key+"."+strconv.Itoa(part))
				rest, found = rest+text, ok
			}
		}
		if !found {
			return rest
		}
	}
}

// record is what an object with before-images has under a key.
func record(v *version, key string) (string, bool) {
	data, _ := v.Object.Object["data"].(map[string]any)
	text, ok := data[key].(string)
	if ok && v.Ref.Resource == "secrets" {
		decoded, err := base64.StdEncoding.DecodeString(text)
		return string(decoded), err == nil
	}
	return text, ok
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// imageRef is an object that a status names as Kind/name.
func imageRef(namespace, entry string) Ref {
	kind, name, _ := strings.Cut(entry, "/")
	return Ref{Resource: strings.ToLower(kind) + "s", Namespace: namespace, Name: name}
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// judgeStrays: nothing is written but targets, what Janus keeps for itself, the volume of
// a claim, and what a target owns, to free it.
func (c *trial) judgeStrays() {
	for _, w := range c.writes {
		if w.run != nil || w.Kind == "aside" {
			continue
		}
		switch {
		case c.frees(w):
		case len(c.targets[w.ref]) > 0 && !c.own[w.ref] && !isLock(w.ref):
			c.breach(DurableIntent, "%s landed on the target %s and is no item's: manager %q", w.At, w.ref, w.FieldManager)
		case c.own[w.ref], w.ref.Resource == transactions, w.ref.Resource == leases, w.ref.Resource == "persistentvolumes":
		case isImageName(w.ref), isRevision(w.ref):
		default:
			c.breach(DurableIntent, "%s landed on %s, which is no target", w.At, w.ref)
		}
	}
}

const leases = "leases.coordination.k8s.io"

// isLock reports whether an object is a lock.
func isLock(ref Ref) bool {
	return ref.Resource == leases && strings.HasPrefix(ref.Name, "janus-lock-")
}

// isImageName reports whether an object has the name of one with before-images.
func isImageName(ref Ref) bool {
	if ref.Resource != "configmaps" && ref.Resource != "secrets" {
		return false
	}
	return strings.HasSuffix(ref.Name, "-rollback") || strings.Contains(ref.Name, "-rollback-")
}
