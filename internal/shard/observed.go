package shard

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

// observedRecords say since when this process has seen each Lease as it is. Another machine's
// clock proves nothing, so the times in a Lease are not compared with ours.
type observedRecords map[string]observedRecord

type observedRecord struct {
	version string
	since   time.Time
}

// look takes note of what there is now, and forgets what there is not.
func (s observedRecords) look(leases []coordinationv1.Lease, now time.Time) {
	seen := map[string]bool{}
	for i := range leases {
		name, version := leases[i].Name, leases[i].ResourceVersion
		seen[name] = true
		if old, ok := s[name]; !ok || old.version != version || now.Before(old.since) {
			s[name] = observedRecord{version: version, since: now}
		}
	}
	for name := range s {
		if !seen[name] {
			delete(s, name)
		}
	}
}

// expired reports whether anyone who holds a Lease has not renewed it in time.
func (s observedRecords) expired(lease *coordinationv1.Lease, now time.Time) bool {
	duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	return now.Sub(s[lease.Name].since) > duration
}
