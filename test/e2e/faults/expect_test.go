package faults

import (
	"janus.io/janus/test/faultinject"
)

// allowedEnds is the rule: which ends a plan without acts of others may have.
//
//   - A fault of a write, of a watch, or a crash changes nothing about the end. What
//     was not sent is sent again, and what was sent is observed.
//   - A read that fails changes nothing either: it is repeated.
//   - A read that answers 404 once changes nothing: absence is confirmed.
//   - A read of a target that is out of date may be taken for the before-image. The
//     change then meets another resourceVersion, and if fields differ, that is a
//     conflict: Failed before the first change, RolledBack after it.
func allowedEnds(p scenario, wanted string) []string {
	for _, e := range p.events {
		if faultinject.Fault(e.what) == faultinject.Stale {
			return []string{wanted, "RolledBack", "Failed"}
		}
	}
	return []string{wanted}
}
