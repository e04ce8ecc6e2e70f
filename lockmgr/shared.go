package lockmgr

import (
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/sharedlease"
)

// # Shared locks
//
// The lock of a Key that is Shared has any number of readers at once, or one writer: a holder
// whose Key is not Shared. There is one Lease either way. While readers have it, its holder is
// SharedHolder, an annotation lists them, and a second one names the writer that comes next.
//
//	rule L: every join, leave, renewal and takeover writes the whole Lease, conditioned on
//	        the resourceVersion that it has read. So of two that write at once, one has seen
//	        what the other wrote.
//	rule T: an entry has a time of its own, judged like that of a Lease. It is over when the
//	        entry has stood unchanged, by the observer's clock, for as long as it says. What
//	        others write into the Lease does not renew it.
//	rule W: a writer takes the Lease over when all readers are over or have ended. Until then
//	        the writer enters itself as the next, and renews that while it waits.
//	rule R: a reader does not join while another is the next, unless that is over or has ended.
//	rule F: a writer enters itself only at the first lock, in the order of Key.Less, that it is
//	        refused.
//
// Rule R keeps a stream of readers from starving a writer. The last reader leaves the Lease
// behind if a writer is next, so that this is remembered.
//
// No circle of waiting holders can form. A holder that waits at a lock holds only locks before
// it. It waits for a holder of that lock, which waits, if at all, at a later one; or, as a
// reader, for the writer that is the next there, which by rule F waits at the same lock, for
// readers that wait, if at all, at a later one. A writer never waits for the next writer. If a
// writer has lost a lock that it held while it waited, it waits at an earlier lock from then on;
// it does not renew its entry there, and the entry is over within the writer's TTL.
//
// The Lease is owned by all in it, if each of them can own it: the garbage collector deletes it
// when the last of them is gone. Otherwise it has no owner, for it must not go with one of
// several.

// isOurs says whether a holder has a Lease, alone or with others.
func isOurs(lease *coordinationv1.Lease, identity string) bool {
	return slices.Contains(sharedlease.Holders(lease), identity)
}

// firstHolder is who has a Lease, for messages: of several the first.
func firstHolder(lease *coordinationv1.Lease) string {
	if holders := sharedlease.Holders(lease); len(holders) > 0 {
		return holders[0]
	}
	return ""
}

// entry is the holder's entry in a Lease at a place, written over a version of it.
func (h Holder) entry(place types.NamespacedName, over string, now time.Time) sharedlease.Entry {
	e := sharedlease.Entry{Holder: h.Identity, Seconds: h.seconds(), Renewed: metav1.MicroTime{Time: now}, Over: over}
	if h.Owner != nil && place.Namespace == h.OwnerNamespace {
		e.Owner = h.Owner
	}
	return e
}
