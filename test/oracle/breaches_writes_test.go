package oracle

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
)

func TestLostWritesAreFound(t *testing.T) {
	for _, c := range []wrong{
		{"a Patch over what was written since it was prepared", NoLostWrite, `overwrote .data.color = "yellow", which another client wrote after it was prepared @101`,
			commit(hooks{"do0": func(w *world) {
				w.foreign(mapA, "somebody", func(o tree) { o["data"].(tree)["color"] = "yellow" })
			}})},
		{"a Delete of what was written since", NoLostWrite, `overwrote .data.note = "mine"`,
			commit(hooks{"do3": func(w *world) { w.foreign(mapC, "somebody", note) }})},
		{"an Update over what was written since", NoLostWrite, "overwrote .spec.replicas = 5",
			commit(hooks{"do2": func(w *world) {
				w.foreign(webD, "somebody", func(o tree) { o["spec"].(tree)["replicas"] = int64(5) })
			}, "-do2": func(w *world) {
				w.send("PUT", webD, asItem(2), "Deployment", func(o tree) {
					o["spec"].(tree)["replicas"] = int64(1)
					o["spec"].(tree)["template"].(tree)["spec"] = tree{"containers": []any{tree{"name": "web", "image": "web:2"}}}
				})
			}})},
		{"a change of another object than was prepared", NoLostWrite, "of uid 00000005-0000-4000-8000-000000000000, and uid",
			commit(hooks{"do0": func(w *world) {
				w.foreignDelete(mapA)
				w.uids = 4
				w.foreign(mapA, "somebody", func(o tree) { o["data"] = tree{"color": "red"} })
			}})},
		{"a Patch of what it does not name", NoLostWrite, "changed .data.size from \"small\" to \"large\", which the Patch does not name",
			commit(hooks{"-do0": func(w *world) {
				w.send("PATCH", mapA, asItem(0), "ConfigMap", func(o tree) { o["data"] = tree{"color": "blue", "size": "large"} })
			}})},
		{"a rollback over what was written since the change", NoLostWrite, `changed .data.color from "yellow" to "red", and another client had written "yellow" @`,
			rollBack(hooks{"open0": func(w *world) {
				w.foreign(mapA, "somebody", func(o tree) { o["data"].(tree)["color"] = "yellow" })
			}})},
		{"a rollback over what another client has applied since", NoLostWrite, `changed .data.color from "blue" to "red", and another client had written "blue" @`,
			rollBack(hooks{"open0": func(w *world) {
				w.foreign(mapA, "somebody", func(o tree) {
					meta := o["metadata"].(tree)
					entries, _ := meta["managedFields"].([]any)
					claim := tree{"manager": "gitops", "operation": "Apply", "fieldsV1": tree{"f:data": tree{"f:color": tree{}}}}
					meta["managedFields"] = append(slices.Clone(entries), claim)
				})
			}})},
		{"a rollback of what no change had changed", NoLostWrite, `changed .data.note from "mine" to nothing, which no change of the Transaction had changed`,
			rollBack(hooks{"open0": func(w *world) { w.foreign(mapA, "somebody", note) }, "-undo0": func(w *world) {
				w.send("PATCH", mapA, asItem(0), "", func(o tree) { o["data"] = copyOf(w.images[0])["data"] })
			}})},
		{"a rollback that puts back what another client has removed", NoLostWrite, `changed .data.color from nothing to "red", and another client had written nothing`,
			rollBack(hooks{"open0": func(w *world) {
				w.foreign(mapA, "somebody", func(o tree) { delete(o["data"].(tree), "color") })
			}})},
		{"a deletion of what others have written", NoLostWrite, `deleted shop/configmaps/b@127 with .data.note = "mine", which another client wrote`,
			rollBack(hooks{"open1": func(w *world) { w.foreign(mapB, "somebody", note) }})},
		{"a deletion of what others have made", NoLostWrite, "which the Transaction had not made",
			rollBack(hooks{"open1": func(w *world) {
				w.foreignDelete(mapB)
				w.foreign(mapB, "somebody", func(o tree) { o["data"] = tree{"x": "2"} })
			}})},
		{"a restore of what another client has made in its place", NoLostWrite, "which another client had made in place of what the Transaction had changed",
			rollBack(hooks{"open0": func(w *world) {
				w.foreignDelete(mapA)
				w.foreign(mapA, "somebody", func(o tree) { o["data"] = tree{"color": "blue", "size": "small"} })
			}})},
		{"Force without a record", NoLostWrite, `and another client had written "yellow"`,
			forced(rollBack(hooks{"open0": func(w *world) {
				w.foreign(mapA, "somebody", func(o tree) { o["data"].(tree)["color"] = "yellow" })
			}}))},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
}

func forced(w *world) *world {
	w.evidence.Runs[0].Spec.ConflictPolicy = api.ConflictForce
	return w
}

// Whether the values may be restored again is for the values to say.
func TestOwnersFollowValuesThatAreRestoredAgain(t *testing.T) {
	told := rollBack(hooks{"owners0": func(w *world) {
		w.foreign(mapA, "kubectl-edit", func(o tree) { o["data"].(tree)["color"] = "blue" })
		w.owners(0)
		w.undo(0)
	}})
	var found []string
	for _, b := range told.breaches() {
		found = append(found, b.Guarantee)
	}
	assert.NotContains(t, found, ExactlyOnce)
	assert.Contains(t, found, NoLostWrite)
}

func TestRepetitionsAreFound(t *testing.T) {
	again := func(act func(w *world)) func(*world) { return act }
	for _, c := range []wrong{
		{"a change that lands twice", ExactlyOnce, "item 0 (Patch shop/configmaps/a): do (values) took effect twice",
			commit(hooks{"do0": again(func(w *world) { w.do(0) })})},
		{"a compensation that lands twice", ExactlyOnce, "item 0 (Patch shop/configmaps/a): undo (values) took effect twice",
			rollBack(hooks{"undo0": func(w *world) {
				w.send("PATCH", mapA, asItem(0), "", func(o tree) { o["data"].(tree)["color"] = "rosy" })
			}})},
		{"owners that are given back twice", ExactlyOnce, "undo (owners) took effect twice",
			rollBack(hooks{"owners0": func(w *world) {
				w.send("PATCH", mapA, asItem(0), "", func(o tree) { own(o, "third", true) })
			}})},
		{"two hand-overs", ExactlyOnce, "hand-over (owners) took effect twice",
			commit(hooks{"handover": func(w *world) { w.handOver(0) }})},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
}
