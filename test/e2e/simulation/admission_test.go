package simulation

import (
	"slices"
	"testing"

	"janus.io/janus/test/apisim"
)

// stampField is what mutating admission writes while it does. What it makes of values is
// tried on the real API server.
const stampField = ".metadata.annotations.stamp"

// TestControllersAndAdmission runs random Transactions as TestSeeds does, while besides
// mutating admission begins and ceases to stamp what is written, and a controller adopts
// what was there before.
func TestControllersAndAdmission(t *testing.T) {
	t.Parallel()
	campaignOf(t, max(1, *seeds/3), func(seed uint64) script {
		p := seeded(seed)
		if p.acts == nil {
			p.acts = acts
		}
		p.acts = slices.Concat(p.acts, controllers)
		return p
	})
}

// controllers are acts of what is installed in a cluster. Each is there several times, to
// happen about as often as all others together.
var controllers = slices.Repeat([]act{
	{"stamp", func(a *actors) error {
		a.world.stamps = !a.world.stamps
		a.world.admitted = []string{stampField}
		return nil
	}},
	{"adopt", (*actors).adopt},
}, 6)

// mutate is the mutating admission of the namespace: a stamp in every write of a target.
func (w *world) mutate(a apisim.Admission) bool {
	if !w.stamps || a.Subresource != "" || !slices.ContainsFunc(pool, func(t thing) bool { return t.name == a.Name }) {
		return false
	}
	notes := a.Object.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes["stamp"] = "policy"
	a.Object.SetAnnotations(notes)
	return true
}

// adopt makes the widget the controller of an object that has none, as a controller does
// that finds it by its labels.
func (a *actors) adopt() error {
	owner, orphan := pool[4], pool[a.world.random.IntN(4)]
	by, of := a.live(owner), a.live(orphan)
	if by == nil || of == nil || by.GetDeletionTimestamp() != nil || of.GetDeletionTimestamp() != nil || len(of.GetOwnerReferences()) > 0 {
		return nil
	}
	return a.merge(orphan.with(nil), "controller", map[string]any{"metadata": map[string]any{
		"uid": string(of.GetUID()),
		"ownerReferences": []any{map[string]any{
			"apiVersion": by.GetAPIVersion(), "kind": by.GetKind(), "name": by.GetName(), "uid": string(by.GetUID()),
			"controller": true, "blockOwnerDeletion": true,
		}},
	}})
}
