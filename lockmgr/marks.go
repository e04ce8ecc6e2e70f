package lockmgr

import (
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/sharedlease"
)

// # Whose a Lease is
//
// Everybody who may write Leases may write one of the name of a lock, with any holder in it. An
// admission policy that keeps others from writing held locks may know these by their labels. So a
// Lease is a holder's if it names the holder and has the labels that the holder gives to its
// Leases, or if this process has made it:
//
//   - One that names the holder, lacks the labels, and was not made here was written by another
//     client. It is in the way like any Lease of another holder, until it has stood unchanged for
//     as long as it says, and is then taken over, which gives it the labels.
//   - One that this process has made, and that has lost its labels since, gets them back when it
//     is renewed.
//   - Release asks for the name alone: nothing that names the holder is to stay.
//
// The same is true of a Lease that readers share. One without the labels of a shared Lease has one
// holder of a strange name.

// isOwn says whether a Lease that was just read is the holder's, alone or with others.
func (m *Manager) isOwn(h Holder, lease *coordinationv1.Lease) bool {
	return isOurs(lease, h.Identity) && (h.isMarked(lease) || m.hasMade(h, lease))
}

// isForged says whether a Lease that is not the holder's names it.
func (m *Manager) isForged(h Holder, lease *coordinationv1.Lease) bool {
	return isOurs(lease, h.Identity) && !m.isOwn(h, lease)
}

// sharingOf is what a Lease says of its readers, if it is one that readers share.
func (m *Manager) sharingOf(h Holder, lease *coordinationv1.Lease) (s sharedlease.Sharing, shared bool) {
	s, shared = sharedlease.Of(lease)
	if !shared || !h.isMarked(lease) && !m.hasMade(h, lease) {
		return sharedlease.Sharing{}, false
	}
	return s, true
}

// hasMade says whether this process has written the Lease for the holder. Another Lease of the
// name has another uid.
func (m *Manager) hasMade(h Holder, lease *coordinationv1.Lease) bool {
	for _, known := range m.memory.at(h.Identity, []types.NamespacedName{placeOf(lease)}) {
		return known.lease != nil && known.lease.UID == lease.UID
	}
	return false
}

// isMarked says whether a Lease has the labels of one that the holder has, alone or with others.
func (h Holder) isMarked(lease *coordinationv1.Lease) bool {
	for key, value := range h.labelsOf(lease) {
		if found, ok := lease.Labels[key]; !ok || found != value {
			return false
		}
	}
	return true
}

func (h Holder) labelsOf(lease *coordinationv1.Lease) map[string]string {
	if _, shared := sharedlease.Of(lease); shared {
		return h.SharedLabels
	}
	return h.Labels
}

// marked is the holder's Lease with its labels.
func (h Holder) marked(lease *coordinationv1.Lease, key Key) *coordinationv1.Lease {
	labels := maps.Clone(lease.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, h.labelsOf(lease))
	if isStandIn(key, placeOf(lease)) {
		labels[LabelStandsInFor] = standInLabel(key.Namespace)
	}
	if len(labels) > 0 {
		lease.Labels = labels
	}
	return lease
}
