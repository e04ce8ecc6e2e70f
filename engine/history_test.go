package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// history is what a world remembers of its Transaction and of others.
type history struct{ *world }

func (h history) Number(_ context.Context, _ *api.Transaction, floor int64) (number int64, err error) {
	return number, h.call("number", func() (string, error) {
		h.counted = max(h.counted, floor)
		for known := range h.history {
			h.counted = max(h.counted, known)
		}
		h.counted++
		number = h.counted
		return fmt.Sprintf("number %d", number), nil
	})
}

func (history) Digest(*api.Transaction) (string, error) { return "sha256:d", nil }

func (h history) Keep(_ context.Context, t *api.Transaction) (taken bool, err error) {
	return taken, h.call("remember", func() (string, error) {
		number := t.Status.Revision
		if h.stored == nil || h.stored.Status.Revision != number {
			h.t.Errorf("revision %d is made before it is on record:\n%s", number, h.transcript())
		}
		if taken = h.history[number] != "" && h.history[number] != ours; taken {
			return fmt.Sprintf("remember as %d (the number is taken)", number), nil
		}
		h.history[number] = ours
		return fmt.Sprintf("remember as %d", number), nil
	})
}

func (h history) Prune(_ context.Context, _ *api.Transaction, limit int) error {
	return h.call("forget", func() (string, error) {
		numbers := slices.Sorted(maps.Keys(h.history))
		gone := numbers[:max(len(numbers)-limit, 0)]
		for _, number := range gone {
			delete(h.history, number)
		}
		return fmt.Sprint("forget ", gone), nil
	})
}

func (h history) Find(_ context.Context, t *api.Transaction) (found api.Undoing, err error) {
	return api.Undoing{UndoneRevision: api.UndoneRevision{Name: t.Spec.UndoOf.Name, UID: "7f39", Revision: 7, Digest: "sha256:d"}}, h.call("find what is to be undone", func() (string, error) {
		return "find what is to be undone", nil
	})
}

func (h history) Remembered(_ context.Context, t *api.Transaction) (bool, error) {
	return h.history[t.Status.Revision] == ours, h.call("look for the revision", func() (string, error) { return "look for the revision", nil })
}

// inHistory has the Transaction of a world remembered, after three others.
func inHistory(w *world) {
	w.stored.Spec.RevisionHistoryLimit = ptr.To(int32(3))
	w.history = map[int64]string{4: "one", 5: "another", 7: "a third"}
}

// undoes has the Transaction of a world undo another. Its changes are those that follow.
func undoes(w *world) { w.stored.Spec.UndoOf = &api.UndoOf{Name: "release"} }

// remembering are the scenarios in which a Transaction enters the history.
var remembering = []scenario{
	{"it is remembered in place of the oldest", []string{"a"}, inHistory, api.PhaseCommitted},
	{"its number is taken before it is remembered", []string{"a"}, func(w *world) {
		inHistory(w)
		w.after["number 8"] = func() { w.history[8] = "another client" }
	}, api.PhaseCommitted},
	{"no number is to be had", []string{"a"}, func(w *world) {
		inHistory(w)
		w.refuse["number"] = errRefused
	}, api.PhaseCommitted},
	{"it may not be remembered", []string{"a"}, func(w *world) {
		inHistory(w)
		w.refuse["remember"] = errRefused
	}, api.PhaseCommitted},
	{"the others may not be forgotten", []string{"a"}, func(w *world) {
		inHistory(w)
		w.refuse["forget"] = errRefused
	}, api.PhaseCommitted},
	{"it is not known in time whether it is remembered", []string{"a"}, func(w *world) {
		inHistory(w)
		w.stored.Spec.Timeout = ptr.To[api.Duration]("1s")
		w.refuse["remember"] = errLost
	}, api.PhaseCommitted},
	{"it undoes another", []string{"a"}, undoes, api.PhaseCommitted},
	{"what it is to undo is not remembered", []string{"a"}, func(w *world) {
		undoes(w)
		w.refuse["find what is to be undone"] = errRefused
	}, api.PhaseFailed},
	{"it is not known at once what it is to undo", []string{"a"}, func(w *world) {
		undoes(w)
		w.replies["find what is to be undone"] = []reply{{err: errLost}}
	}, api.PhaseCommitted},
	{"it is deleted before it is remembered", []string{"a"}, func(w *world) {
		inHistory(w)
		w.after["do a"] = w.delete
	}, ""},
	{"it is deleted once it has a number", []string{"a"}, func(w *world) {
		inHistory(w)
		w.after["number"] = w.delete
	}, ""},
	{"the answer with its number is lost", []string{"a"}, func(w *world) {
		inHistory(w)
		w.replies["number"] = []reply{{err: errLost, lost: true}}
	}, api.PhaseCommitted},
	{"it has a number and its before-images cannot be saved", []string{"a"}, func(w *world) {
		inHistory(w)
		w.refuse["save"] = errRefused
	}, api.PhaseFailed},
	{"it has a number and is rolled back", []string{"a", "b"}, func(w *world) {
		inHistory(w)
		w.refuse["do b"] = errRefused
	}, api.PhaseRolledBack},
	{"goes on, and what was made is remembered", []string{"a", "b"}, going(func(w *world) {
		inHistory(w)
		w.refuse["do b"] = errRefused
	}), api.PhaseFailed},
	{"goes on, and what was made may not be remembered", []string{"a", "b"}, going(func(w *world) {
		inHistory(w)
		w.refuse["do b"], w.refuse["remember"] = errRefused, errRefused
	}), api.PhaseFailed},
	{"goes on, and nothing was made that could be remembered", []string{"a"}, going(func(w *world) {
		inHistory(w)
		w.refuse["do a"] = errRefused
	}), api.PhaseFailed},
	{"goes on, and is not remembered because it is not known what was made", []string{"a", "b"}, going(func(w *world) {
		inHistory(w)
		w.replies["do a"] = []reply{{err: errLost}}
		w.after["do a: fails"] = func() { w.targets["a"] = "theirs" }
	}), api.PhaseFailed},
}

// Once, whatever happens on the way; and nobody else is forgotten for it twice.
func TestATransactionIsRememberedOnce(t *testing.T) {
	for name, prepare := range map[string]func(*world){
		"it commits":      func(*world) {},
		"it ends in part": going(func(w *world) { w.refuse["do b"] = errRefused }),
	} {
		t.Run(name, func(t *testing.T) { rememberedOnce(t, prepare) })
	}
}

func rememberedOnce(t *testing.T, prepare func(*world)) {
	t.Helper()
	for n := 1; ; n++ {
		w := newWorld(t, "a", "b")
		inHistory(w)
		prepare(w)
		w.nth = func(call int, _ string) reply { return reply{crash: call == n} }
		w.run()
		number := w.stored.Status.Revision
		assert.Equal(t, map[int64]string{5: "another", 7: "a third", number: ours}, w.history, w.transcript())
		assert.True(t, plan.CanBeUndone(w.stored), w.transcript())
		assert.LessOrEqual(t, number, int64(9), "one number is lost with the process at most")
		if w.calls < n {
			return
		}
	}
}

// A revision may not be made, so the before-images are discarded. Should it have to be ended once more, no
// revision is made either: it could not be undone.
func TestWhatWasLeftOutIsNotRememberedLater(t *testing.T) {
	for name, happens := range map[string]func(*world){
		"someone writes the Transaction": func(w *world) { w.bump() },
		"the process ends":               func(w *world) { w.replies["remove the finalizer"] = []reply{{err: errLost, crash: true}} },
		"the finalizer is gone already":  func(w *world) { w.replies["remove the finalizer"] = []reply{{err: errLost, lost: true, crash: true}} },
	} {
		for end, prepare := range map[string]func(*world){
			"it commits":      func(*world) {},
			"it ends in part": going(refuseB),
		} {
			t.Run(name+", "+end, func(t *testing.T) {
				w := newWorld(t, "a", "b")
				inHistory(w)
				prepare(w)
				w.refuse["remember"] = errRefused
				w.after["discard the before-images"] = func() {
					delete(w.refuse, "remember")
					happens(w)
				}
				w.run()
				for number, whose := range w.history {
					assert.NotEqual(t, ours, whose, "revision %d:\n%s", number, w.transcript())
				}
				assert.False(t, plan.CanBeUndone(w.stored), w.transcript())
				assert.Empty(t, w.stored.Status.RevisionDigest)
				assert.Contains(t, w.stored.Status.Items[1].Message, "the history is not as it should be", w.transcript())
				oracle(t, w)
			})
		}
	}
}

func TestATransactionSaysHowManyAreRememberedOrThePolicyDoes(t *testing.T) {
	txn := &api.Transaction{}
	assert.Zero(t, plan.Policy{}.HistoryLimit(txn))
	assert.Equal(t, 5, plan.Policy{RevisionHistoryLimit: 5}.HistoryLimit(txn))
	for _, says := range []int32{0, 7} {
		txn.Spec.RevisionHistoryLimit = &says
		assert.EqualValues(t, says, plan.Policy{RevisionHistoryLimit: 5}.HistoryLimit(txn))
	}
}
