package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// A scenario is something that happens to a Transaction. It leaves its transcript in
// testdata/transcripts.
type scenario struct {
	name  string
	items []string
	set   func(w *world)
	ends  api.Phase // empty when the Transaction is gone at the end
}

// scenarios are what is known to happen.
var scenarios = []scenario{
	{"three changes are made", []string{"a", "b", "c"}, func(*world) {}, api.PhaseCommitted},
	{"the second change is refused", []string{"a", "b", "c"}, refuseB, api.PhaseRolledBack},
	{"the last change is refused", []string{"a", "b", "c"}, func(w *world) { w.refuse["do c"] = errRefused }, api.PhaseRolledBack},
	{"the spec is refused", []string{"a"}, func(w *world) { w.refuse["validate"] = errRefused }, api.PhaseFailed},
	{"the preparation is refused", []string{"a", "b"}, func(w *world) { w.refuse["save"] = errRefused }, api.PhaseFailed},
	{"the answer is lost and the change is in effect", []string{"a", "b", "c"}, func(w *world) {
		w.replies["do b"] = []reply{{err: errLost, lost: true}}
	}, api.PhaseCommitted},
	{"the answer is lost and the change is not in effect", []string{"a", "b", "c"}, func(w *world) {
		w.replies["do b"] = []reply{{err: errLost}}
	}, api.PhaseCommitted},
	{"the answer is lost and another client has written the target", []string{"a", "b", "c"}, func(w *world) {
		w.replies["do b"] = []reply{{err: errLost}}
		w.after["do b: fails"] = func() { w.targets["b"] = "theirs" }
	}, api.PhaseFailed},
	{"the answer is lost and the change is refused when it is tried again", []string{"a", "b"}, func(w *world) {
		w.replies["do b"] = []reply{{err: errLost}, {err: errRefused}}
	}, api.PhaseRolledBack},
	{"a request lands while its intent is settled", []string{"a", "b"}, func(w *world) {
		w.replies["do b"] = []reply{{err: errLost}, {err: errRefused}}
		w.after["-- looks again in 1s"] = func() { w.targets["b"], w.dos["b"] = wrote("b"), 1 }
	}, api.PhaseRolledBack},
	{"the server is busy", []string{"a"}, func(w *world) {
		w.replies["do a"] = []reply{{err: errBusy}}
	}, api.PhaseCommitted},
	{"a deletion waits for a finalizer when the rollback begins", []string{"a", "b"}, func(w *world) {
		w.replies["do b"] = []reply{{err: errLost}, {err: errRefused}}
		w.after["do b: fails, Rejected"] = func() { w.targets["b"], w.dos["b"] = "going", 1 }
	}, api.PhaseRolledBack},
	{"a lock is held and then free", []string{"a", "b"}, func(w *world) {
		w.locks["b"] = "another Transaction"
		w.after["-- looks again in 1s"] = func() { delete(w.locks, "b") }
	}, api.PhaseCommitted},
	{"a lock is held for too long", []string{"a", "b"}, func(w *world) {
		w.locks["b"] = "another Transaction"
		w.stored.Spec.Timeout = ptr.To(api.Duration("3s"))
	}, api.PhaseFailed},
	{"a lock is lost before the first change", []string{"a", "b"}, func(w *world) {
		w.after["checkpoint 2"] = func() { w.locks["b"] = "another Transaction" }
	}, api.PhaseRolledBack},
	{"a lock is lost between two changes", []string{"a", "b", "c"}, func(w *world) {
		w.after["do a"] = func() { w.locks["b"] = "another Transaction" }
	}, api.PhaseRolledBack},
	{"the timeout ends while before-images are saved", []string{"a", "b"}, func(w *world) {
		w.stored.Spec.Timeout = ptr.To(api.Duration("5s"))
		w.after["save"] = func() { w.clock.Step(6 * time.Second) }
	}, api.PhaseFailed},
	{"the timeout ends while changes are made", []string{"a", "b", "c"}, func(w *world) {
		w.stored.Spec.Timeout = ptr.To(api.Duration("5s"))
		w.after["do a"] = func() { w.clock.Step(6 * time.Second) }
	}, api.PhaseRolledBack},
	{"the timeout ends after the last change", []string{"a", "b"}, func(w *world) {
		w.stored.Spec.Timeout = ptr.To(api.Duration("5s"))
		w.after["do b"] = func() { w.clock.Step(6 * time.Second) }
	}, api.PhaseCommitted},
	{"the spec is changed while changes are made", []string{"a", "b"}, func(w *world) {
		w.after["do a"] = func() {
			w.say("-- somebody changes the spec")
			w.stored.Spec.Changes = w.stored.Spec.Changes[:1]
			w.stored.Generation++
			w.bump()
		}
	}, api.PhaseRolledBack},
	{"the fields cannot be handed over", []string{"a", "b"}, func(w *world) { w.refuse["hand over"] = errRefused }, api.PhaseCommitted},
	{"the fields are handed over at the second attempt", []string{"a"}, func(w *world) {
		w.replies["hand over"] = []reply{{err: errBusy}, {err: errLost, lost: true}}
	}, api.PhaseCommitted},
	{"the fields cannot be handed over in time", []string{"a"}, func(w *world) {
		w.stored.Spec.Timeout = ptr.To(api.Duration("5s"))
		w.refuse["hand over"] = errBusy
		w.after["hand over: fails"] = func() { w.clock.Step(6 * time.Second) }
	}, api.PhaseCommitted},
	{"another client has written a field and it is kept", []string{"a", "b", "c"}, func(w *world) {
		w.refuse["do c"] = errRefused
		w.replies["undo b"] = []reply{{err: errWritten}}
	}, api.PhaseFailed},
	{"another client has written a field and it is overwritten once that is on record", []string{"a", "b", "c"}, func(w *world) {
		w.stored.Spec.ConflictPolicy = api.ConflictForce
		w.refuse["do c"] = errRefused
		w.replies["undo b"] = []reply{{err: errWritten}, {err: errLost, lost: true}}
	}, api.PhaseRolledBack},
	{"it is deleted before it is seen", []string{"a"}, func(w *world) {
		w.stored.Finalizers = []string{"somebody.else/finalizer"}
		w.delete()
		w.after["-- abandoned"] = func() { w.gone, w.stored = w.stored, nil }
	}, ""},
	{"it is deleted while it prepares", []string{"a", "b"}, func(w *world) {
		w.stored.Spec.OnDelete = api.DeleteRollback
		w.after["save"] = w.delete
	}, ""},
	{"it is deleted while changes are made, and leaves them", []string{"a", "b", "c"}, func(w *world) {
		w.after["do b"] = w.delete
	}, ""},
	{"it is deleted while changes are made, and rolls them back", []string{"a", "b", "c"}, func(w *world) {
		w.stored.Spec.OnDelete = api.DeleteRollback
		w.after["do b"] = w.delete
	}, ""},
	{"it is deleted while it rolls back", []string{"a", "b", "c"}, func(w *world) {
		refuseB(w)
		w.after["undo a"] = w.delete
	}, ""},
	{"it is deleted after the last change", []string{"a"}, func(w *world) {
		w.after["do a"] = w.delete
	}, ""},
	{"it is deleted when it has failed", []string{"a", "b"}, func(w *world) {
		refuseB(w)
		w.refuse["undo a"] = errRefused
		w.after["-- looks again in 10s"] = w.delete
	}, ""},
	{"another client has written a field that is to be rolled back", []string{"a", "b", "c"}, func(w *world) {
		w.refuse["do c"] = errRefused
		w.after["do b"] = func() { w.targets["a"] = "theirs" }
	}, api.PhaseFailed},
	{"a rollback fails and is recovered", []string{"a", "b", "c"}, func(w *world) {
		w.refuse["do c"] = errRefused
		forbidden := errclass.New(errclass.Terminal, errclass.AccessDenied, "restore", "ConfigMap shop/a", "may not patch it")
		w.replies["undo a"] = []reply{{err: forbidden}, {err: forbidden}}
	}, api.PhaseRolledBack},
	{"a rollback fails for good", []string{"a", "b"}, func(w *world) {
		refuseB(w)
		w.refuse["undo a"] = errclass.New(errclass.Terminal, errclass.AccessDenied, "restore", "ConfigMap shop/a", "may not patch it")
	}, api.PhaseFailed},
	{"a rollback meets a server that is away for longer than the timeout", []string{"a", "b"}, func(w *world) {
		refuseB(w)
		w.stored.Spec.Timeout = ptr.To(api.Duration("5s"))
		w.refuse["undo a"] = errLost
	}, api.PhaseFailed},
	{"one object is changed twice", []string{"a1", "b", "a2"}, func(*world) {}, api.PhaseCommitted},
	{"one object is changed twice and both are rolled back", []string{"a1", "b", "a2", "c"}, func(w *world) {
		w.refuse["do c"] = errRefused
	}, api.PhaseRolledBack},
	{"one object is changed twice and the later change is rolled back in a recovery", []string{"a1", "a2", "b"}, func(w *world) {
		refuseB(w)
		forbidden := errclass.New(errclass.Terminal, errclass.AccessDenied, "restore", "ConfigMap shop/a", "may not patch it")
		w.replies["undo a2"] = []reply{{err: forbidden}}
	}, api.PhaseRolledBack},
	{"it is not known whether a change was made until the recovery", []string{"a", "b"}, func(w *world) {
		w.replies["do b"] = []reply{{err: errLost}}
		w.refuse["observe b"] = errclass.New(errclass.Terminal, errclass.AccessDenied, "read", "ConfigMap shop/b", "may not get it")
		w.after["-- looks again in 10s"] = func() { delete(w.refuse, "observe b") }
	}, api.PhaseRolledBack},
	{"the second change of an object cannot be prepared", []string{"a1", "a2"}, func(w *world) {
		w.after["do a1"] = func() { w.refuse["save"] = errRefused }
	}, api.PhaseRolledBack},
}

func refuseB(w *world) { w.refuse["do b"] = errRefused }

func TestTranscripts(t *testing.T) {
	for _, s := range slices.Concat(scenarios, halted, expiring, remembering, preflights, branching, bounded, asides, depending, needing, restoring, guards, continuing, deletions) {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t, s.items...)
			s.set(w)
			w.run()
			golden(t, "transcripts/"+strings.ReplaceAll(s.name, " ", "-")+".txt", []byte(w.transcript()))
			require.NoError(t, checkOrder(w.lines))
			assert.Equal(t, s.ends, phaseOf(w), w.transcript())
			oracle(t, w)
		})
	}
}

func phaseOf(w *world) api.Phase {
	if w.stored == nil {
		return ""
	}
	return w.stored.Status.Phase
}

// oracle says whether what a world is like at the end is what the Transaction
// says, and that nothing is left behind.
func oracle(t reporter, w *world) {
	t.Helper()
	for name, holder := range w.locks {
		if holder == ours {
			t.Errorf("the lock of %s is left", name)
		}
	}
	last := w.stored
	if last == nil {
		last = w.gone
	}
	if len(last.Finalizers) > 0 && w.stored != nil {
		t.Errorf("finalizers are left: %v", last.Finalizers)
	}
	phase := last.Status.Phase
	if w.stored != nil && !phase.Terminal() {
		t.Errorf("it rests in phase %s", phase)
	}
	if keeps := w.stored != nil && last.Status.RollbackRef != nil && (phase != api.PhaseCommitted || last.Status.RevisionDigest != ""); !keeps && len(w.images) > 0 {
		t.Errorf("before-images are left")
	}
	for i, item := range last.Status.Items {
		name := item.Name
		if w.dos[name] > 1 || w.undos[name] > 1 {
			t.Errorf("item %s: %d effective changes and %d effective compensations", name, w.dos[name], w.undos[name])
		}
		inEffect := w.dos[name] - w.undos[name]
		switch {
		case item.State == api.ItemSkipped:
			if w.dos[name] > 0 {
				t.Errorf("item %s is skipped, and was made:\n%s", name, w.transcript())
			}
		case item.Type == api.Await && w.dos[name] == 0:
		case phase == api.PhaseCommitted && inEffect != 1, phase == api.PhaseRolledBack && inEffect != 0, phase == api.PhasePlanned && inEffect != 0:
			t.Errorf("%s, but item %s is in effect %d times:\n%s", phase, name, inEffect, w.transcript())
		case phase == api.PhaseFailed && item.RolledBack && inEffect != 0:
			t.Errorf("Failed, and item %d (%s) is in effect and said to be rolled back:\n%s", i, item.State, w.transcript())
		case phase == api.PhaseFailed && item.State == api.ItemCommitted && plan.EndedInPart(&last.Status) && plan.GoesOn(last):
			if inEffect != 1 && item.Type != api.Await {
				t.Errorf("item %s is Committed, and in effect %d times:\n%s", name, inEffect, w.transcript())
			}
		case phase == api.PhaseFailed && item.State != api.ItemUnresolved && inEffect != 0:
			t.Errorf("Failed, and item %d (%s) is in effect but not named:\n%s", i, item.State, w.transcript())
		}
	}
}

// A transcript in which an effect comes too early is what the checker is for.
func TestTheCheckerOfTranscriptsFindsAnEffectBeforeItsRecord(t *testing.T) {
	good := []string{
		"add the finalizer", "save a", "checkpoint 3 Committing: a Committing", "do a",
		"checkpoint 4 RollingBack: a Committed [because: X]", "checkpoint 5 RollingBack: a RollingBack", "undo a",
	}
	require.NoError(t, checkOrder(good))
	without := func(n int) []string { return append(append([]string{}, good[:n]...), good[n+1:]...) }
	require.ErrorContains(t, checkOrder(without(0)), "finalizer")
	require.ErrorContains(t, checkOrder(without(1)), "before-image")
	require.ErrorContains(t, checkOrder(without(2)), "intent")
	require.ErrorContains(t, checkOrder(without(5)), "intent")
	lost := append([]string{}, good...)
	lost[2] = "checkpoint: fails, StaleVersion"
	require.ErrorContains(t, checkOrder(lost), "intent")
}

// A process may end after any line, and so may the next.
func TestACrashAfterAnyLineChangesNothingAboutTheEnd(t *testing.T) {
	for _, base := range []struct {
		name string
		set  func(*world)
		ends api.Phase
	}{
		{"commit", func(*world) {}, api.PhaseCommitted},
		{"rollback", func(w *world) { w.refuse["do c"] = errRefused }, api.PhaseRolledBack},
		{"rollback-that-comes-back-to-an-item", func(w *world) {
			w.refuse["do c"] = errRefused
			w.invalidUntil("b", "a")
		}, api.PhaseRolledBack},
		{"refused", func(w *world) { w.refuse["save"] = errRefused }, api.PhaseFailed},
		{"remembered", inHistory, api.PhaseCommitted},
		{"refusal-in-the-pre-flight", func(w *world) { w.problems = twoProblems }, api.PhaseFailed},
		{"plan", func(w *world) { w.stored.Spec.DryRun = true }, api.PhasePlanned},
		{"refusal-after-which-it-goes-on", going(refuseB), api.PhaseFailed},
	} {
		t.Run(base.name, func(t *testing.T) {
			var story strings.Builder
			for n := 1; ; n++ {
				w := newWorld(t, "a", "b", "c")
				base.set(w)
				hit := ""
				w.nth = func(call int, _ string) reply { return reply{crash: call == n} }
				w.after["-- the process ends"] = func() { hit = w.lines[len(w.lines)-2] }
				w.run()
				require.NoError(t, checkOrder(w.lines), w.transcript())
				require.Equal(t, base.ends, phaseOf(w), w.transcript())
				oracle(t, w)
				if hit == "" && w.calls < n {
					break
				}
				if hit != "" {
					fmt.Fprintf(&story, "after  %s\nthen   %s\n\n", hit, strings.Join(following(w.lines), "\n       "))
				}
			}
			golden(t, "transcripts/crash-after-any-line-of-a-"+base.name+".txt", []byte(story.String()))
		})
	}
}

// following returns what the next process does up to its first checkpoint.
func following(lines []string) []string {
	var out []string
	started := false
	for _, line := range lines {
		if started {
			out = append(out, line)
			if strings.HasPrefix(line, "checkpoint") {
				return out
			}
		}
		started = started || strings.HasPrefix(line, "-- the process ends")
	}
	return out
}

// The i-th request fails, for i = 1, 2, 3 … until a run has no such request.
func TestAnyOneRequestMayFail(t *testing.T) {
	for _, failure := range []struct {
		name string
		reply
	}{
		{"it never arrives", reply{err: errLost}},
		{"its answer is lost", reply{err: errLost, lost: true}},
		{"the server is busy", reply{err: errBusy}},
	} {
		for _, base := range []struct {
			name string
			set  func(*world)
			ends api.Phase
		}{
			{"while all is well", func(*world) {}, api.PhaseCommitted},
			{"while it is remembered", inHistory, api.PhaseCommitted},
			{"while a change is refused", func(w *world) { w.refuse["do c"] = errRefused }, api.PhaseRolledBack},
			{"while a compensation has to wait for another", func(w *world) {
				w.refuse["do c"] = errRefused
				w.invalidUntil("b", "a")
			}, api.PhaseRolledBack},
			{"while a change is refused, and it goes on", going(refuseB), api.PhaseFailed},
			{"while all is tried only", func(w *world) { w.stored.Spec.DryRun = true }, api.PhasePlanned},
		} {
			t.Run(failure.name+" "+base.name, func(t *testing.T) {
				for n := 1; ; n++ {
					w := newWorld(t, "a", "b", "c")
					base.set(w)
					w.nth = func(call int, _ string) reply {
						if call == n {
							return failure.reply
						}
						return reply{}
					}
					w.run()
					require.NoError(t, checkOrder(w.lines), w.transcript())
					require.Equal(t, base.ends, phaseOf(w), "request %d:\n%s", n, w.transcript())
					oracle(t, w)
					if w.calls < n {
						return
					}
				}
			})
		}
	}
}
