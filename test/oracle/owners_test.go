package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// owners says who owns which fields of the target of the Patch, with this the last entry
// of managedFields.
func owners(o tree, manager, time string, fields tree) {
	own(o, manager, true)
	entries := o["metadata"].(tree)["managedFields"].([]any)
	entry := entries[len(entries)-1].(tree)
	entry["time"], entry["fieldsV1"] = time, fields
}

func fieldsOfData(names ...string) tree {
	data := tree{}
	for _, name := range names {
		data["f:"+name] = tree{}
	}
	return tree{"f:data": data}
}

// labelled has another client write the target of the Patch, and own no more of it.
func labelled(w *world) {
	o := copyOf(w.live[mapA])
	o["metadata"].(tree)["labels"] = tree{"theirs": "too"}
	owners(o, "somebody", "2026-01-01T00:00:01Z", tree{"f:metadata": tree{"f:labels": tree{"f:theirs": tree{}}}})
	w.store(mapA, o)
}

// colored has another client own a field that the Patch is to take.
func colored(w *world) {
	w.foreign(mapA, "else", func(o tree) { owners(o, "tester", "2025-12-31T00:00:00Z", fieldsOfData("color")) })
}

// taken is a story in which the Patch takes a field from its owner, another client writes
// the target, and the rollback leaves the owner with some fields, and the time.
func taken(meanwhile func(o tree), kept ...string) hooks {
	return takenFrom(fieldsOfData("color", "size"), fieldsOfData("size"), meanwhile, fieldsOfData(kept...))
}

// takenFrom says what the owner had, what the Patch left it, and what the rollback does.
func takenFrom(had, left tree, meanwhile func(o tree), kept tree) hooks {
	const early = "2025-12-31T00:00:00Z"
	return hooks{
		"begin": func(w *world) {
			w.foreign(mapA, "else", func(o tree) { owners(o, "tester", early, had) })
		},
		"-do0": func(w *world) {
			w.send("PATCH", mapA, asItem(0), "ConfigMap", func(o tree) {
				o["data"].(tree)["color"] = "blue"
				owners(o, "tester", early, left)
				owners(o, manager(0), early, fieldsOfData("color"))
			})
		},
		"open0": func(w *world) {
			o := copyOf(w.live[mapA])
			meanwhile(o)
			w.store(mapA, o)
		},
		"-owners0": func(w *world) {
			w.send("PATCH", mapA, asItem(0), "", func(o tree) {
				own(o, manager(0), false)
				owners(o, "tester", early, kept)
			})
		},
	}
}

func TestOwnersAreBackButForWhatOthersHaveClaimed(t *testing.T) {
	const later = "2026-01-01T00:00:01Z"
	claim := func(o tree) {
		o["data"].(tree)["color"] = "red"
		own(o, manager(0), false)
		owners(o, "somebody", later, fieldsOfData("color"))
	}
	remove := func(o tree) {
		delete(o["data"].(tree), "size")
		owners(o, "tester", "2025-12-31T00:00:00Z", tree{})
	}
	annotate := func(o tree) {
		owners(o, "somebody", later, tree{"f:metadata": tree{"f:annotations": tree{"f:theirs": tree{}}}})
	}
	without := func(told hooks) hooks {
		told["-undo0"] = nothing // the value is back already
		return told
	}
	// An object of whose parts its owner has none is written in two ways.
	whole, bare := tree{"f:data": tree{".": tree{}, "f:color": tree{}}}, tree{"f:data": tree{}}
	for what, told := range map[string]hooks{
		"all of an object but itself is claimed":     without(takenFrom(whole, bare, claim, bare)),
		"nothing of it is claimed":                   taken(annotate, "color", "size"),
		"what was claimed stays theirs alone":        without(taken(claim, "size")),
		"what was claimed has its owner back beside": without(taken(claim, "color", "size")),
		"what was removed has no owner":              taken(remove, "color"),
	} {
		t.Run(what, func(t *testing.T) { assert.Empty(t, lines(rollBack(told).breaches())) })
	}
	for what, told := range map[string]hooks{
		"an object itself is lost":       without(takenFrom(whole, bare, claim, tree{})),
		"nothing of it is claimed":       taken(annotate, "size"),
		"another field is claimed":       without(taken(claim, "color")),
		"another field is removed":       taken(remove),
		"it owns what it did not own":    taken(annotate, "color", "size", "more"),
		"somebody writes as it, besides": taken(func(o tree) { owners(o, "tester", later, fieldsOfData("size", "more")) }, "size"),
	} {
		t.Run(what, func(t *testing.T) {
			expect(t, rollBack(told).breaches(), Atomicity, "an entry of managedFields that it had")
		})
	}
}
