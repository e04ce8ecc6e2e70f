package oracle

import (
	"slices"
	"strings"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
)

// imageFinalizer keeps an object with before-images until Janus lets go.
const imageFinalizer = "backup.janus.io/before-image"

// judgeLeft: when a Transaction has ended or is gone, it has left no lock, no
// finalizer, and no before-image but those that are kept on purpose.
func (c *trial) judgeLeft(r *run) {
	s := r.end()
	if s == nil || r.gone == nil && !ended(s.phase) {
		return
	}
	if r.gone == nil && s.finalizer {
		c.breach(NothingLeft, "%s is %s (@%d) and still has the finalizer %s", r, s.phase, s.Revision, api.Finalizer)
	}
	if r.gone != nil && s.finalizer && r.gone.by == nil {
		return // another client has removed the finalizer, and with it all that was to follow
	}
	for ref, o := range c.objects {
		switch last := o.last(); {
		case last == nil:
		case isLock(ref):
			is := lease(last)
			if last.by != nil && (is.heldBy(r) || is.next != nil && is.next.heldAloneBy(r)) {
				c.breach(NothingLeft, "%s is %s, and %s@%d is still held by %s, or waits for it", r, r.finally(), ref, last.Revision, is.holder)
			}
		case ref.Namespace == r.Namespace && isImageName(ref):
			c.judgeImageLeft(r, s, last)
		}
	}
}

// unknownSince reports whether a process of Janus has died since the Transaction was let
// go, or has left its Transactions to another.
func (c *trial) unknownSince(r *run) bool {
	letGo, calls := 0, 0
	for i := range c.Calls {
		if call := &c.Calls[i]; call.Resource == "transactions" && call.Namespace == r.Namespace && call.Name == r.Name && call.Landed() {
			letGo, calls = max(letGo, call.Sent), i+1
		}
	}
	return c.HandedOver >= calls && c.HandedOver > 0 || slices.ContainsFunc(c.Calls, func(call faultinject.Call) bool {
		return call.Sent > letGo && (call.Fault == faultinject.CrashBefore || call.Fault == faultinject.CrashAfter || call.Fault == faultinject.LateAfterRestart)
	})
}

func ended(phase string) bool { return api.Phase(phase).Terminal() }

// finally says how a Transaction has ended.
func (r *run) finally() string {
	if r.gone != nil {
		return "gone"
	}
	return r.end().phase
}

// judgeImageLeft: before-images go with a commit, and when nothing was changed; after
// a rollback they stay as long as the Transaction does, and with a revision as long as
// that does.
func (c *trial) judgeImageLeft(r *run, s *state, last *version) {
	if !ownedBy(last, r) {
		return
	}
	if slices.ContainsFunc(list(last.Object.Object, "metadata", "finalizers"), func(f any) bool { return f == imageFinalizer }) {
		if r.gone != nil && c.unknownSince(r) {
			return // Who comes next knows nothing of the Transaction.
		}
		c.breach(NothingLeft, "%s is %s, and %s@%d still has the finalizer %s", r, r.finally(), last.Ref, last.Revision, imageFinalizer)
		return
	}
	kind := "ConfigMap/"
	if last.Ref.Resource == "secrets" {
		kind = "Secret/"
	}
	switch {
	case r.gone != nil, last.terminating():
		// It is the garbage collector's, or waits for others.
	case r.endedInEffect() && s.digest != "" && c.forgotten(r, s):
		c.breach(NothingLeft, "%s is remembered no more, and its before-images %s@%d are still there", r, last.Ref, last.Revision)
	case r.endedInEffect() && s.digest == "", !r.begun():
		c.breach(NothingLeft, "%s is %s, and its before-images %s@%d are still there", r, s.phase, last.Ref, last.Revision)
	case !contains(s.images, kind+last.Ref.Name):
		c.breach(NothingLeft, "%s is %s, and %s@%d is still there, which it does not name: %s", r, s.phase, last.Ref, last.Revision, strings.Join(s.images, " "))
	}
}
