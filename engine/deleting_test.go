package engine

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// deletes gives a change a when that is false, and whenFalse Delete.
func (w *world) deletes(name string) {
	w.onlyWhen(name, false)
	w.change(name).WhenFalse = api.WhenFalseDelete
}

func (w *world) change(name string) *api.Change {
	return &w.stored.Spec.Changes[slices.IndexFunc(w.stored.Spec.Changes, func(c api.Change) bool { return c.Name == name })]
}

// deletions are the scenarios in which targets are deleted because a when is false.
var deletions = []scenario{
	{"deletes, nothing depends on it", []string{"a", "b", "c"}, func(w *world) { w.deletes("b") }, api.PhaseCommitted},
	{"deletes, what refers to it in a list goes first", []string{"x", "a", "b", "c", "d"}, func(w *world) {
		w.deletes("a")
		w.refers["b"], w.refers["d"] = []string{"a"}, []string{"b"}
	}, api.PhaseCommitted},
	{"deletes, a diamond goes the other way round", turned, func(w *world) {
		diamond(w)
		w.deletes("a")
	}, api.PhaseCommitted},
	{"deletes, a side of a diamond and what depends on it", turned, func(w *world) {
		diamond(w)
		w.deletes("b")
	}, api.PhaseCommitted},
	{"deletes, and its when is true", turned, func(w *world) {
		diamond(w)
		w.deletes("a")
		delete(w.unasked, "a")
	}, api.PhaseCommitted},
	{"deletes, there is none", []string{"a", "b", "c"}, func(w *world) {
		w.deletes("b")
		w.targets["b"] = ""
	}, api.PhaseCommitted},
	{"deletes, what depends on it is not there", turned, func(w *world) {
		diamond(w)
		w.deletes("a")
		w.targets["d"], w.targets["c"] = "", ""
	}, api.PhaseCommitted},
	{"deletes, one that may be deleted by itself is not asked", []string{"a", "b"}, func(w *world) {
		w.deletes("a")
		w.deletes("b")
		w.refers["b"] = []string{"a"}
		w.targets["b"] = ""
	}, api.PhaseCommitted},
	{"deletes, what makes nothing is skipped", []string{"e", "d", "c", "b", "a"}, func(w *world) {
		w.deletes("a")
		w.needs("b", "a")
		w.change("b").Type = api.Delete
		w.needs("c", "a")
		w.change("c").Type, w.change("c").ReadyWhen = api.Await, &api.ReadyWhen{Expression: "object != null"}
		w.needs("d", "b", "c")
	}, api.PhaseCommitted},
	{"deletes, and a later change of the object", []string{"a1", "b", "a2"}, func(w *world) { w.deletes("a1") }, api.PhaseCommitted},
	{"deletes, an Await of the object waits as ever", []string{"a1", "b", "a2", "c"}, func(w *world) {
		w.deletes("a1")
		w.change("a2").Type, w.change("a2").ReadyWhen = api.Await, &api.ReadyWhen{Expression: "object == null"}
		w.needs("c", "a1", "a2")
	}, api.PhaseCommitted},
	{"deletes, and the object of what depends on it is created first", []string{"b", "a1", "a2"}, func(w *world) {
		w.deletes("b")
		w.refers["a2"] = []string{"b"}
		w.targets["a"] = ""
	}, api.PhaseCommitted},
	{"deletes, and the object of what depends on it is changed first", []string{"b", "x", "c", "a1", "a2"}, func(w *world) {
		w.deletes("b")
		w.refers["a1"], w.refers["a2"] = []string{"c"}, []string{"b"}
	}, api.PhaseCommitted},
	{"deletes, and the object of what depends on it is awaited first", []string{"b", "a1", "a2", "a3"}, func(w *world) {
		w.deletes("b")
		w.change("a2").Type, w.change("a2").ReadyWhen = api.Await, &api.ReadyWhen{Expression: "object != null"}
		w.refers["a3"] = []string{"b"}
		w.lastIsRefused()
	}, api.PhaseRolledBack},
	{"deletes, an Await between two changes of the object waits as ever", []string{"a1", "a2", "a3"}, func(w *world) {
		w.deletes("a1")
		w.change("a2").Type, w.change("a2").ReadyWhen = api.Await, &api.ReadyWhen{Expression: "object == null"}
	}, api.PhaseCommitted},
	{"deletes, in a graph an Await between two changes of the object waits as ever", []string{"a1", "a2", "a3", "b"}, func(w *world) {
		w.deletes("a1")
		w.change("a2").Type, w.change("a2").ReadyWhen = api.Await, &api.ReadyWhen{Expression: "object == null"}
		w.needs("b", "a3")
	}, api.PhaseCommitted},
	{"deletes, in a graph the object of what depends on it is changed first", []string{"x", "a1", "b", "a2"}, func(w *world) {
		w.waitsFor("x", "1m")
		w.needs("a1", "x")
		w.needs("a2", "b")
		w.deletes("b")
		w.after["-- looks again in 1s"] = func() { delete(w.unready, "x") }
	}, api.PhaseCommitted},
	{"deletes, because of two that are false", []string{"c", "b", "a", "x"}, func(w *world) {
		w.deletes("a")
		w.deletes("b")
		w.needs("c", "a", "b")
	}, api.PhaseCommitted},
	{"deletes, what is skipped because of another is deleted all the same", []string{"c", "b", "a"}, func(w *world) {
		w.onlyWhen("b", false)
		w.deletes("a")
		w.needs("c", "b", "a")
	}, api.PhaseCommitted},
	{"deletes, the deletion is refused", turned, func(w *world) {
		diamond(w)
		w.deletes("a")
		w.refuse["do a"] = errRefused
	}, api.PhaseRolledBack},
	{"deletes, a later change is refused", []string{"x", "a", "b", "c", "d"}, func(w *world) {
		w.deletes("a")
		w.refers["b"], w.refers["d"] = []string{"a"}, []string{"b"}
		w.refuse["do c"] = errRefused
	}, api.PhaseRolledBack},
	{"deletes, the answer is lost", []string{"a", "b"}, func(w *world) {
		w.deletes("a")
		w.refers["b"] = []string{"a"}
		w.replies["do b"] = []reply{{err: errLost, lost: true}}
		w.replies["do a"] = []reply{{err: errLost}}
	}, api.PhaseCommitted},
	{"deletes, one that was deleted cannot be made again", []string{"x", "a", "b"}, func(w *world) {
		w.deletes("a")
		w.refers["b"] = []string{"a"}
		w.lastIsRefused()
		w.refuse["undo a"] = errclass.New(errclass.Conflict, errclass.AlreadyExists, "restore", "ConfigMap shop/a", "another client has created it")
	}, api.PhaseFailed},
	{"goes on, what depends on it cannot be deleted", []string{"x", "a", "b", "c"}, going(func(w *world) {
		w.deletes("a")
		w.refers["b"] = []string{"a"}
		w.refuse["do b"] = errRefused
	}), api.PhaseFailed},
	{"goes on, an object of which an earlier change fails is deleted", []string{"x", "a1", "b", "a2"}, going(func(w *world) {
		w.waitsFor("x", "1m")
		w.needs("a1", "x")
		w.needs("a2", "b")
		w.deletes("b")
		w.refuse["do a1"] = errRefused
		w.after["-- looks again in 1s"] = func() { delete(w.unready, "x") }
	}), api.PhaseFailed},
	{"goes on, what another failure has left out is deleted", []string{"c", "b", "a", "first"}, going(func(w *world) {
		w.refuse["do b"] = errRefused
		w.deletes("a")
		w.needs("c", "b", "a")
		w.change("a").DependsOn = []string{"first"}
		w.change("b").DependsOn = []string{"first"}
	}), api.PhaseFailed},
}

// lastIsRefused has the last change refused, when all others are made.
func (w *world) lastIsRefused() {
	w.stored.Spec.Changes = append(w.stored.Spec.Changes, api.Change{
		Name: "last", Type: api.Patch, Target: api.Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "last"},
	})
	w.targets["last"] = "as it was"
	w.refuse["do last"] = errRefused
}

// Whenever a process dies, or an answer is lost, what is decided is decided once, and what depends on an
// object is deleted before it: the world checks that.
func TestADeletionIsDecidedOnceWhateverHappens(t *testing.T) {
	for _, s := range deletions {
		t.Run(s.name, func(t *testing.T) {
			for _, r := range []reply{{crash: true}, {err: errLost, lost: true}, {err: errLost}} {
				for n := 1; ; n++ {
					w := newWorld(t, s.items...)
					s.set(w)
					w.nth = func(call int, _ string) reply {
						if call == n {
							return r
						}
						return reply{}
					}
					decided := map[string]bool{}
					w.run()
					for _, txn := range w.reached {
						for i, item := range txn.Status.Items {
							deletes := plan.DeletesInstead(txn, i)
							if decided[item.Name] && !deletes {
								t.Fatalf("item %s deletes no more (call %d):\n%s", item.Name, n, w.transcript())
							}
							decided[item.Name] = deletes
						}
					}
					require.NoError(t, checkOrder(w.lines), w.transcript())
					assert.Equal(t, s.ends, phaseOf(w), "call %d: %s", n, w.transcript())
					oracle(t, w)
					if t.Failed() || n > w.calls {
						break
					}
				}
			}
		})
	}
}
