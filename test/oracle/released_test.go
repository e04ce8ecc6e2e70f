package oracle

import (
	"slices"
	"testing"

	api "janus.io/janus/api/v1alpha1"
)

// The story is of a Patch that takes a color and gives it back: as a release it is wrong twice.
func TestAReleasedManagerThatStaysIsFound(t *testing.T) {
	t.Parallel()
	owning := func(manager, operation string) func(*world) {
		return func(w *world) {
			w.foreign(mapA, "else", func(o tree) {
				meta := o["metadata"].(tree)
				entries, _ := meta["managedFields"].([]any)
				entries = slices.DeleteFunc(slices.Clone(entries), func(e any) bool { return e.(tree)["manager"] == manager })
				meta["managedFields"] = append(entries, tree{
					"manager": manager, "operation": operation, "apiVersion": "v1", "time": "2025-12-31T00:00:00Z", "fieldsV1": fieldsOfData("color"),
				})
			})
		}
	}
	told := commit(hooks{"begin": owning("tester", "Update"), "handover": owning(manager(0), "Apply")})
	change := &told.evidence.Runs[0].Spec.Changes[0]
	change.Content, change.Release = nil, &api.Release{Managers: []string{"tester"}}

	found := told.breaches()

	expect(t, found, Atomicity, "has left tester the owner of .data.color in shop/configmaps/a@")
	expect(t, found, NoLostWrite, "changed .data.color from")
}
