package oracle

import (
	"slices"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
)

// serviceAccounts is the resource of those whom Janus acts as.
const serviceAccounts = "serviceaccounts"

// judgeAccount: a change is made as the ServiceAccount that the Transaction was prepared
// with, and not as one of the same name that has been made since. A change whose intent
// was recorded before that may be under way.
func (c *trial) judgeAccount(r *run) {
	o := c.objects[Ref{Resource: serviceAccounts, Namespace: r.Namespace, Name: r.Spec.ServiceAccountName}]
	if o == nil || c.TrustsAccounts || c.misled(o) {
		return
	}
	for _, w := range r.writes {
		if w.role != do || w.made == nil || w.item < 0 {
			continue
		}
		intent := r.reached(w.item, api.ItemCommitting)
		if intent == nil {
			continue
		}
		pinned := str(intent.Object.Object, "status", "serviceAccountUID")
		if pinned != "" && o.gone(pinned, intent.Revision) {
			c.breach(Identity, "%s: %s@%d was made by %s as %s of uid %s, which had gone before its intent was recorded (@%d)",
				r.named(w.item), w.ref, w.made.Revision, w.At, o.ref, pinned, intent.Revision)
		}
	}
}

// misled reports whether Janus was told of a ServiceAccount as it was before.
func (c *trial) misled(o *object) bool {
	for i := range c.Calls {
		if call := &c.Calls[i]; call.Fault == faultinject.Stale && refOf(call) == o.ref {
			return true
		}
	}
	return false
}

// gone reports whether an object of a uid had gone before a revision.
func (o *object) gone(uid string, revision int64) bool {
	return slices.ContainsFunc(o.versions, func(v *version) bool {
		return v.Deleted && v.uid == uid && v.Revision < revision
	})
}
