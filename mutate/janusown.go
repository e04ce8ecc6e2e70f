package mutate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/mutate/kinds"
)

// ownHarm warns of a change that takes from Janus what it needs to go on, or to roll back: the rights
// that its ServiceAccount has by a binding, or the records that a webhook would be asked about.
func (c Change) ownHarm(before, after *unstructured.Unstructured) []string {
	var out []string
	if c.binds(before) && after != nil && !c.binds(after) {
		out = append(out, c.warn("it gives the Transaction's own ServiceAccount its rights, and takes them away: what comes after it, and a rollback, may lack them")...)
	}
	if after != nil && kinds.AsksAboutRecords(c.Ref.GVK.GroupKind(), after.Object) && (before == nil || !kinds.AsksAboutRecords(c.Ref.GVK.GroupKind(), before.Object)) {
		out = append(out, c.warn("it is asked about the records of Janus too: while nothing answers for it, Janus cannot record anything, and rolls nothing back; exclude backup.janus.io, Leases, ConfigMaps and Secrets from its rules")...)
	}
	return out
}
