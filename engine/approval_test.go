package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// approvals tells what the world says of the policy.
type approvals struct{ *world }

func (a approvals) Guarded(_ context.Context, t *api.Transaction) error {
	return a.call("ask whether approvals are guarded", func() (string, error) {
		if a.unguarded {
			return "", errclass.New(errclass.Terminal, errclass.ApprovalUnguarded, "approve", "Transaction "+t.Name, "the policy is not in force")
		}
		return "approvals are guarded", nil
	})
}

// standing makes a scenario one of a Transaction that needs approval, and gets it as soon as a
// plan stands, each time.
func standing(set func(*world)) func(*world) {
	return func(w *world) {
		w.stored.Spec.Approval = &api.Approval{Required: true, Timeout: ptr.To(api.Duration("60s"))}
		w.approves(func() { w.approve(w.stored.Status.Approval.Digest) })
		set(w)
	}
}

// approves does something whenever a plan stands.
func (w *world) approves(act func()) {
	w.after["-- looks again in "] = func() {
		w.approves(act)
		if plan.Standing(w.stored) {
			act()
		}
	}
}

// approve writes an approval, as the policy lets an approver do.
func (w *world) approve(digest string) {
	w.say("-- someone approves")
	w.stored.Annotations = map[string]string{api.ApprovedPlanAnnotation: digest, api.ApprovedByAnnotation: "jane"}
	w.bump()
}

// needing are the scenarios of Transactions that need approval.
var needing = []scenario{
	{"a plan is approved", []string{"a", "b"}, standing(func(*world) {}), api.PhaseCommitted},
	{"a plan is not approved in time", []string{"a", "b"}, standing(func(w *world) { w.approves(func() {}) }), api.PhaseFailed},
	{"an approved plan has changed", []string{"a", "b", "c"}, standing(func(w *world) {
		w.after["-- someone approves"] = func() { w.targets["b"] = "theirs" }
	}), api.PhaseCommitted},
	{"an approved plan has changed and nobody approves the other", []string{"a", "b"}, standing(func(w *world) {
		w.after["-- someone approves"] = func() {
			w.targets["b"] = "theirs"
			w.approves(func() {})
		}
	}), api.PhaseFailed},
	{"what the pre-flight leaves is approved", []string{"a", "b", "c"}, standing(going(func(w *world) { w.problems = twoProblems })), api.PhaseFailed},
	{"what the pre-flight leaves is approved and has changed", []string{"a", "b", "c"}, standing(going(func(w *world) {
		w.problems = twoProblems[:1]
		w.after["-- someone approves"] = func() { w.targets["b"], w.problems = "theirs", nil }
	})), api.PhaseCommitted},
	{"approvals are not guarded", []string{"a"}, standing(func(w *world) { w.unguarded = true }), api.PhaseFailed},
	{"approvals are not guarded any more", []string{"a"}, standing(func(w *world) {
		w.after["-- someone approves"] = func() { w.unguarded = true }
	}), api.PhaseFailed},
	{"an approved plan is refused under its locks", []string{"a", "b"}, standing(func(w *world) {
		w.refuse["save"] = errRefused
	}), api.PhaseFailed},
	{"an approved change is refused", []string{"a", "b"}, standing(func(w *world) { w.refuse["do b"] = errRefused }), api.PhaseRolledBack},
	{"a lock is held when a plan is approved", []string{"a", "b"}, standing(func(w *world) {
		w.locks["b"] = "another Transaction"
		w.after["lock: fails"] = func() { delete(w.locks, "b") }
	}), api.PhaseCommitted},
	{"it is cancelled while its plan stands", []string{"a"}, standing(func(w *world) {
		w.approves(func() { w.cancel(api.CancelRollback) })
	}), api.PhaseFailed},
	{"it is deleted while its plan stands", []string{"a"}, standing(func(w *world) { w.approves(w.delete) }), ""},
	{"its spec is changed while its plan stands", []string{"a"}, standing(func(w *world) {
		w.approves(func() { w.edit("another change", func(s *api.TransactionSpec) { s.Changes[0].Type = api.Delete }) })
	}), api.PhaseFailed},
	{"the server is busy when an approval is checked", []string{"a"}, standing(func(w *world) {
		w.after["-- someone approves"] = func() { w.replies["ask whether approvals are guarded"] = []reply{{err: errBusy}, {err: errLost}} }
	}), api.PhaseCommitted},
}

// The process ends, or the answer is lost, at each of the calls in turn: before it and after it.
// One approval of each plan is enough, each change is made once, and nothing is left.
func TestOneApprovalIsEnoughWhateverHappens(t *testing.T) {
	for _, changes := range []bool{false, true} {
		for _, fault := range []reply{{crash: true}, {err: errLost, crash: true}, {err: errLost}, {err: errLost, lost: true}, {err: errLost, lost: true, crash: true}} {
			for at := 1; ; at++ {
				w := newWorld(t, "a", "b")
				standing(func(w *world) {
					if changes {
						w.after["-- someone approves"] = func() { w.targets["b"] = "theirs" }
					}
				})(w)
				hit := false
				w.nth = func(n int, _ string) reply {
					if n != at {
						return reply{}
					}
					hit = true
					return fault
				}
				w.run()
				about := fmt.Sprintf("plan changes: %t, fault %+v at call %d:\n%s", changes, fault, at, w.transcript())
				oracle(t, w)
				require.Equal(t, api.PhaseCommitted, phaseOf(w), about)
				want := map[bool]int64{false: 1, true: 2}[changes]
				require.Equal(t, want, w.stored.Status.Approval.Plans, about)
				require.Equal(t, "jane", w.stored.Status.Approval.ApprovedBy, about)
				require.Equal(t, map[string]int{"a": 1, "b": 1}, w.dos, about)
				if !hit {
					break
				}
			}
		}
	}
}

// An approval counts for the plan that it names, and for no other: neither the one before nor
// one that someone thought of.
func TestAnApprovalIsOfOnePlan(t *testing.T) {
	w := newWorld(t, "a", "b")
	standing(func(*world) {})(w)
	var digests []string
	w.approves(func() {
		digests = append(digests, w.stored.Status.Approval.Digest)
		if len(digests) > 1 {
			return
		}
		w.approve(digests[0])
		w.targets["a"] = "theirs"
		// When the second plan is made, the first is true again.
		w.after["release the locks"] = func() { w.targets["a"] = "as it was" }
	})
	w.run()
	require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
	require.Len(t, digests, 2)
	assert.NotEqual(t, digests[0], digests[1])
	assert.Empty(t, w.dos)
	reason, _ := plan.RecordedCause(&w.stored.Status)
	assert.Equal(t, errclass.ApprovalTimeout, reason)
	assert.Equal(t, []string{"a"}, w.stored.Status.Approval.Changed)
}

// The time in which a plan stands is not that of the changes, and neither is the time in which it
// stands and is suspended that of the plan.
func TestTheTimeOfAPlanThatStands(t *testing.T) {
	w := newWorld(t, "a")
	standing(func(w *world) { w.stored.Spec.Timeout = ptr.To(api.Duration("10s")) })(w)
	result, _ := w.once()
	require.Equal(t, 61*time.Second, result.After)
	w.clock.Step(50 * time.Second)
	w.suspend()
	w.run()
	require.NotNil(t, w.stored.Status.SuspendTime, w.transcript())
	w.clock.Step(time.Hour)
	w.resume()
	result, _ = w.once()
	require.Equal(t, 11*time.Second, result.After, w.transcript())
	w.approve(w.stored.Status.Approval.Digest)
	w.run()
	require.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
	assert.EqualValues(t, 50, w.stored.Status.Approval.WaitedSeconds)
	assert.True(t, meta.IsStatusConditionTrue(w.stored.Status.Conditions, api.ConditionApproved))
}
