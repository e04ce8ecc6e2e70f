package lockmgr

import (
	"maps"
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"janus.io/janus/internal/sharedlease"
)

// LabelStandsInFor marks a Lease that stands in for one in a namespace that did
// not exist. Its value is the namespace, or a hash of what cannot be a label.
const LabelStandsInFor = "janus.io/stands-in-for"

// Everything in a Lease is optional, and people and other tools write Leases
// too. These functions read and write one that may lack any of it.

func holderOf(lease *coordinationv1.Lease) string {
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func placeOf(lease *coordinationv1.Lease) types.NamespacedName {
	return types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
}

// excludes says whether a Lease that is not ours keeps us from the lock of a key. A Lease that has
// lost its holder does not, nor one whose readers the key may join.
func excludes(lease *coordinationv1.Lease, key Key) bool {
	if _, shared := sharedlease.Of(lease); shared && key.Shared {
		return false
	}
	return len(sharedlease.Holders(lease)) > 0
}

// duration is how long a record lasts. One that does not say so lasts as long
// as one of ours would: taking it at once would take it from a holder that has
// just written it.
func duration(lease *coordinationv1.Lease, ours int32) time.Duration {
	return time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, ours)) * time.Second
}

// newLease is the Lease that locks the key for the holder at the place.
func newLease(h Holder, key Key, place types.NamespacedName, now time.Time) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: place.Namespace, Name: place.Name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       ptr.To(h.Identity),
			LeaseDurationSeconds: ptr.To(h.seconds()),
			AcquireTime:          &metav1.MicroTime{Time: now},
			RenewTime:            &metav1.MicroTime{Time: now},
			LeaseTransitions:     ptr.To[int32](0),
		},
	}
	if key.Shared {
		lease.Labels = maps.Clone(h.SharedLabels)
		lease = sharedlease.Sharing{}.With(h.entry(place, "", now)).In(lease, now)
	} else {
		lease.Labels = maps.Clone(h.Labels)
		lease.Annotations = maps.Clone(h.Annotations)
		if h.Owner != nil && place.Namespace == h.OwnerNamespace {
			lease.OwnerReferences = []metav1.OwnerReference{*h.Owner}
		}
	}
	if isStandIn(key, place) {
		if lease.Labels == nil {
			lease.Labels = map[string]string{}
		}
		lease.Labels[LabelStandsInFor] = standInLabel(key.Namespace)
	}
	return lease
}

// takenOver is the predecessor's Lease made the holder's. Nothing of the
// predecessor stays: its labels would name the wrong Transaction, and its
// owner would take our lock with it when it goes. The uid stays as well as the
// resourceVersion, because an update with a resourceVersion alone creates a
// Lease that has vanished.
func takenOver(lease *coordinationv1.Lease, h Holder, key Key, now time.Time) *coordinationv1.Lease {
	ours := newLease(h, key, placeOf(lease), now)
	if key.Shared {
		ours = sharedlease.Sharing{}.With(h.entry(placeOf(lease), lease.ResourceVersion, now)).In(ours, now)
	}
	transitions := ptr.Deref(lease.Spec.LeaseTransitions, 0)
	if transitions < math.MaxInt32 {
		transitions++
	}
	ours.Spec.LeaseTransitions = ptr.To(transitions)
	ours.UID, ours.ResourceVersion = lease.UID, lease.ResourceVersion
	ours.Finalizers = lease.Finalizers
	return ours
}

// renewed is our Lease with its time begun again. It differs from what it was, so that
// it gets another resourceVersion: a process that has hung cannot release it then. Labels that
// another client has taken off are put on again.
func renewed(lease *coordinationv1.Lease, h Holder, key Key, now time.Time) *coordinationv1.Lease {
	if s, shared := sharedlease.Of(lease); shared {
		return h.marked(joined(lease, s, h, now), key)
	}
	next := lease.DeepCopy()
	if last := lease.Spec.RenewTime; last != nil && now.Truncate(time.Microsecond).Equal(last.Time) {
		now = now.Add(time.Microsecond)
	}
	next.Spec.LeaseDurationSeconds = ptr.To(h.seconds())
	next.Spec.RenewTime = &metav1.MicroTime{Time: now}
	return h.marked(next, key)
}

// remembered is the Lease as it is worth remembering. An update without
// managedFields leaves those of the server as they are.
func remembered(lease *coordinationv1.Lease) *coordinationv1.Lease {
	lease = lease.DeepCopy()
	lease.ManagedFields = nil
	return lease
}

// isStandIn says whether a Lease of the key at the place stands in for one in
// the key's own namespace.
func isStandIn(key Key, place types.NamespacedName) bool {
	return key.Namespace != "" && key.Namespace != place.Namespace
}

// standInLabel is the namespace as the value of a label. A namespace that
// exists is always a legal value, but a target may name any other string.
func standInLabel(namespace string) string {
	if len(validation.IsValidLabelValue(namespace)) > 0 {
		return shortHash(namespace)
	}
	return namespace
}
