package oracle

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/test/faultinject"
)

func numberedAs(number int64) Ref { return Ref{revisions, ns, fmt.Sprint(revisionPrefix, number)} }

// limited has the Transaction ask to be remembered.
func limited(w *world) {
	limit := int32(5)
	w.evidence.Runs[0].Spec.RevisionHistoryLimit = &limit
}

// numbered records a number, and what is to be remembered.
func numbered(w *world) {
	w.checkpoint(func(s tree) { s["revision"], s["revisionDigest"] = int64(7), "sha256:r" })
}

// beside adds another Transaction with a number to a story.
func beside(number int64) func(*world) {
	return func(w *world) {
		const uid = "bbbbcccc-0000-0000-0000-000000000000"
		w.evidence.Runs = append(w.evidence.Runs, Run{Namespace: ns, Name: "other", UID: types.UID(uid), Spec: spec(), Items: targets})
		w.foreign(Ref{transactions, ns, "other"}, "janusd", func(o tree) { o["metadata"].(tree)["uid"] = uid })
		w.send("PUT", Ref{transactions, ns, "other"}, faultinject.Call{Subresource: "status", FieldManager: "janusd"}, "Transaction", func(o tree) {
			o["status"] = tree{"phase": "Preparing", "revision": number}
		})
	}
}

// revise makes a revision of the Transaction.
func revise(number int64) func(*world) {
	return func(w *world) {
		w.send("POST", numberedAs(number), faultinject.Call{}, "ControllerRevision", func(o tree) {
			o["metadata"].(tree)["ownerReferences"] = []any{tree{"kind": "Transaction", "uid": txnUID}}
		})
	}
}

// remembered tells of a Transaction that commits and is remembered, with its before-images.
func remembered(different hooks) *world {
	all := hooks{
		"handover": func(w *world) { limited(w); numbered(w); revise(7)(w) },
		"-letgo": func(w *world) {
			w.send("PATCH", imagesOf, faultinject.Call{}, "", func(o tree) { delete(o["metadata"].(tree), "finalizers") })
		},
		"-end": func(w *world) {
			w.checkpoint(func(s tree) { s["phase"], s["completionTime"] = "Committed", "2026-01-01T00:00:10Z" })
		},
	}
	for step, act := range different {
		all[step] = act
	}
	return commit(all)
}

func TestARememberedTransactionIsNoBreach(t *testing.T) {
	for what, told := range map[string]*world{
		"it is remembered":           remembered(nil),
		"its request is sent again":  remembered(hooks{"handover": func(w *world) { limited(w); numbered(w); revise(7)(w); w.checkpoint(func(tree) {}) }}),
		"somebody deletes it":        remembered(hooks{"after": func(w *world) { w.foreignDelete(numberedAs(7)) }}),
		"it is forgotten, all of it": remembered(hooks{"after": func(w *world) { w.remove(imagesOf, ""); w.remove(numberedAs(7), "") }}),
		"another number was taken": remembered(hooks{"handover": func(w *world) {
			limited(w)
			w.checkpoint(func(s tree) { s["revision"], s["revisionDigest"] = int64(6), "sha256:r" })
			numbered(w)
			revise(7)(w)
		}}),
		"it could not be, and says so": remembered(hooks{"handover": func(w *world) { limited(w); numbered(w) }, "after": func(w *world) {
			w.checkpoint(func(s tree) { s["items"].([]any)[3].(tree)["reason"] = "HistoryIncomplete" })
		}}),
		"somebody makes one of that name": commit(hooks{"after": func(w *world) {
			w.foreign(numberedAs(9), "somebody", func(o tree) {
				o["metadata"].(tree)["ownerReferences"] = []any{tree{"kind": "Transaction", "uid": txnUID}}
			})
		}}),
	} {
		t.Run(what, func(t *testing.T) { assert.Empty(t, lines(told.breaches())) })
	}
}

func TestALaterTransactionMayHaveAHigherNumber(t *testing.T) {
	assert.NotContains(t, lines(remembered(hooks{"after": beside(8)}).breaches()), "given")
}

func TestWhatIsWrongWithTheHistoryIsFound(t *testing.T) {
	const made = "shop/controllerrevisions.apps/janus-revision-7@"
	for _, c := range []wrong{
		{"it was not asked for", NothingLeft, "it is not to be remembered, and " + made,
			remembered(hooks{"handover": func(w *world) { numbered(w); revise(7)(w) }})},
		{"before all changes are in effect", Atomicity, made,
			remembered(hooks{"record1": func(w *world) { limited(w); numbered(w); revise(7)(w) }, "handover": nothing})},
		{"of what is rolled back", Atomicity, "remembers it, and not all of its changes are in effect",
			rollBack(hooks{"undo2": func(w *world) { limited(w); numbered(w); revise(7)(w) }})},
		{"under a number that was not on record", ExactlyOnce, "remembers it, and its number is 7 (@",
			remembered(hooks{"handover": func(w *world) { limited(w); numbered(w); revise(8)(w) }})},
		{"before its number was on record", ExactlyOnce, "remembers it, and its number is 0 (@",
			remembered(hooks{"handover": func(w *world) { limited(w); revise(7)(w); numbered(w) }})},
		{"it says so, and is not", Atomicity, "it says that it is remembered as 7 (@",
			remembered(hooks{"handover": func(w *world) { limited(w); numbered(w) }})},
		{"two under one number", ExactlyOnce, "were both given the number 7", remembered(hooks{"after": beside(7)})},
		{"the number of one that is gone is given again", ExactlyOnce, "were both given the number 7", remembered(hooks{"after": func(w *world) {
			w.foreignDelete(numberedAs(7))
			w.end(imagesOf)
			w.end(txn)
			beside(7)(w)
		}})},
		{"a later one has a lower number", Order, "was given the number 7 (@", remembered(hooks{"after": beside(6)})},
		{"it is forgotten, and its before-images are there", NothingLeft, "is remembered no more, and its before-images shop/configmaps/txn-rollback@",
			remembered(hooks{"after": func(w *world) { w.remove(numberedAs(7), "") }})},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
}
