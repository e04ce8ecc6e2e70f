package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

func busy(n int) []reply {
	var out []reply
	for range n {
		out = append(out, reply{err: errBusy})
	}
	return out
}

func (w *world) retries(limit int32)  { w.stored.Spec.RetryLimit = &limit }
func (w *world) perMinute(most int32) { w.stored.Spec.ChangesPerMinute = &most }

// bounded are the scenarios in which attempts are counted, or changes spread over time.
var bounded = []scenario{
	{"as many attempts fail as may", []string{"a", "b"}, func(w *world) {
		w.retries(2)
		w.replies["do b"] = busy(2)
	}, api.PhaseCommitted},
	{"one more attempt fails than may", []string{"a", "b"}, func(w *world) {
		w.retries(2)
		w.replies["do b"] = busy(3)
	}, api.PhaseRolledBack},
	{"the pre-flight fails more often than it may", []string{"a"}, func(w *world) {
		w.retries(0)
		w.replies["validate"] = busy(1)
	}, api.PhaseFailed},
	{"what is waited for is no failed attempt", []string{"a", "b"}, func(w *world) {
		w.retries(0)
		w.locks["b"] = "another Transaction"
		w.after["-- looks again in 1s"] = func() { delete(w.locks, "b") }
	}, api.PhaseCommitted},
	{"a rollback may fail as often as it takes", []string{"a", "b"}, func(w *world) {
		w.retries(0)
		w.refuse["do b"] = errRefused
		w.replies["undo a"] = busy(4)
	}, api.PhaseRolledBack},
	{"changes are spread over time", []string{"a", "b", "c"}, func(w *world) { w.perMinute(30) }, api.PhaseCommitted},
	{"changes are spread over time and one is waited for", turned, func(w *world) {
		diamond(w)
		w.perMinute(30)
		w.waitsFor("b", "1m")
		w.after["-- looks again in 1s"] = func() { delete(w.unready, "b") }
	}, api.PhaseCommitted},
	{"whether a change is wanted is asked when its turn comes", []string{"a", "b"}, func(w *world) {
		w.perMinute(30)
		w.onlyWhen("b", true)
		w.after["-- looks again in 2s"] = func() { w.unasked["b"] = true }
	}, api.PhaseCommitted},
	{"compensations are not spread over time", []string{"a", "b", "c"}, func(w *world) {
		w.perMinute(30)
		w.refuse["do c"] = errRefused
	}, api.PhaseRolledBack},
	{"the process ends while the next change waits for its turn", []string{"a", "b"}, func(w *world) {
		w.perMinute(30)
		w.after["-- looks again in 2s"] = w.restart
	}, api.PhaseCommitted},
}

// slow are requests about an object that are not answered in time.
func slow(object string, n int) []reply {
	var out []reply
	for range n {
		out = append(out, reply{err: errclass.Wrap(context.DeadlineExceeded, "patch", "ConfigMap shop/"+object, false)})
	}
	return out
}

// Who times out on one object again and again gives up after a while, and says on which, why and what
// to do. A success in between, a limit of its own, or an outage in which nothing is answered is another matter.
func TestTimeOutsOfOneObjectEndATransaction(t *testing.T) {
	attempts := func(w *world, call string) int {
		before := len(w.replies[call])
		w.run()
		return before - len(w.replies[call])
	}
	message := func(w *world) string {
		c := meta.FindStatusCondition(w.stored.Status.Conditions, api.ConditionSucceeded)
		return c.Reason + ": " + c.Message
	}
	w := newWorld(t, "a", "b")
	w.replies["do b"] = slow("b", 100)
	assert.Equal(t, api.TimeoutLimit, attempts(w, "do b"))
	assert.Equal(t, api.PhaseRolledBack, w.stored.Status.Phase)
	assert.Equal(t, "RetryLimitExceeded: ConfigMap shop/b: 20 attempts in a row have timed out, while the API server answered other requests "+
		"(patch ConfigMap shop/b: context deadline exceeded); mend the webhook, or make the object smaller if it has very many field managers, "+
		"or allow more by spec.retryLimit", message(w))

	w = newWorld(t, "a", "b")
	w.replies["validate"] = slow("b", 100)
	assert.Equal(t, api.TimeoutLimit, attempts(w, "validate"))
	assert.Equal(t, api.PhaseFailed, w.stored.Status.Phase, "nothing was changed")

	w = newWorld(t, "a", "b")
	w.replies["validate"], w.replies["do a"], w.replies["do b"] = slow("a", 19), slow("a", 19), slow("b", 19)
	w.run()
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase, "each has its own")
	assert.Nil(t, w.stored.Status.TimedOut)

	w = newWorld(t, "a", "b")
	for range 30 {
		w.replies["validate"] = append(w.replies["validate"], append(slow("a", 1), slow("b", 1)...)...)
	}
	w.run()
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase, "it is not one object that is slow")

	w = newWorld(t, "a", "b")
	w.retries(50)
	w.replies["do b"] = slow("b", 50)
	w.run()
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase, "it allows more")
}

// While the API server, or what it stores objects in, answers nobody, no attempt counts.
func TestAnOutageIsNoTimeOutOfOneObject(t *testing.T) {
	w := newWorld(t, "a", "b")
	const begins, ends = 12, 200
	var counted int32 // once it is over
	w.nth = func(n int, who string) reply {
		if w.stored.Status.TimedOut != nil {
			counted = max(counted, w.stored.Status.TimedOut.Attempts)
		}
		if n >= begins && n < ends || n >= ends && counted == 0 && who != "checkpoint" {
			return slow("b", 1)[0]
		}
		return reply{}
	}
	w.run()
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase)
	assert.EqualValues(t, 1, counted, "the last one, which could be written down")
}

// Changes that are in effect stay so, even if the hand-over of one object times out.
func TestTimeOutsAtTheEndLeaveWhatIsInEffect(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.replies["hand over"] = slow("b", 100)
	w.run()
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase)
	assert.Contains(t, w.stored.Status.Items[1].Message, "ConfigMap shop/b")
}

// failures are the numbers of failed attempts that get on record, each once.
func (w *world) failures() []int32 {
	var out []int32
	w.nth = func(int, string) reply {
		if n := w.stored.Status.Failures; len(out) == 0 || out[len(out)-1] != n {
			out = append(out, n)
		}
		return reply{}
	}
	w.run()
	return out
}

func TestFailedAttemptsAreCountedInARow(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.retries(2)
	w.replies["validate"], w.replies["do a"], w.replies["do b"] = busy(2), busy(1), busy(2)
	w.locks["b"] = "another Transaction"
	w.after["-- looks again in 1s"] = func() { delete(w.locks, "b") }
	assert.Equal(t, []int32{0, 1, 2, 0, 1, 0, 1, 2, 0}, w.failures())
	assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase, "each was given all of the attempts")

	// A compensation that is made is a success, too.
	w = newWorld(t, "a", "b")
	w.refuse["do b"] = errRefused
	w.replies["undo a"] = busy(1)
	assert.Equal(t, []int32{0, 1, 0}, w.failures())

	// What ended it stays on record.
	w = newWorld(t, "a")
	w.retries(1)
	w.replies["do a"] = busy(2)
	w.failures()
	assert.Equal(t, api.PhaseRolledBack, w.stored.Status.Phase)
	assert.EqualValues(t, 2, w.stored.Status.Failures)

	// Without a limit a failure that repeats is not written, and is counted when
	// something else is.
	w = newWorld(t, "a", "b")
	w.replies["validate"] = busy(9)
	w.run()
	few := w.stored.Status.Version
	w = newWorld(t, "a", "b")
	w.replies["validate"] = busy(1)
	w.run()
	assert.Equal(t, few, w.stored.Status.Version)
}

func TestTheRetryLimitSaysWhatFailedLast(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.retries(1)
	w.replies["do b"] = busy(2)
	w.run()
	assert.Equal(t, api.PhaseRolledBack, w.stored.Status.Phase)
	c := meta.FindStatusCondition(w.stored.Status.Conditions, api.ConditionSucceeded)
	assert.Equal(t, errclass.RetryLimitExceeded, c.Reason)
	assert.Equal(t, "2 attempts have failed, and spec.retryLimit is 1: send: too many requests", c.Message)
}

func TestChangesThatCannotAllBeBegunInTimeAreRefused(t *testing.T) {
	for _, tt := range []struct {
		timeout   api.Duration
		perMinute int32
		inTime    bool
	}{{"31s", 6, true}, {"30s", 6, true}, {"20s", 6, false}, {"19s", 6, false}, {"1s", 0, true}} {
		w := newWorld(t, "a", "b", "c", "d")
		w.onlyWhen("d", true) // It may take no time.
		w.stored.Spec.Timeout = &tt.timeout
		w.stored.Status.Items = make([]api.Item, 4)
		if tt.perMinute > 0 {
			w.perMinute(tt.perMinute)
		}
		err := plan.InTime(w.stored)
		assert.Equal(t, tt.inTime, err == nil, tt)
		if err != nil {
			assert.Equal(t, errclass.Terminal, errclass.ClassOf(err))
			assert.ErrorContains(t, err, "to begin 3 of them takes 20s at 6 a minute, and spec.timeout is "+string(tt.timeout)+"; raise timeout or changesPerMinute")
		}
	}
}

// What is waited for so long says so; a short wait is over before it is read.
func TestALongWaitForTheNextTurnIsNoted(t *testing.T) {
	for perMinute, noted := range map[int32]bool{6: true, 600: false} {
		w := newWorld(t, "a", "b")
		w.perMinute(perMinute)
		seen := false
		w.nth = func(int, string) reply {
			c := meta.FindStatusCondition(w.stored.Status.Conditions, api.ConditionReconciling)
			seen = seen || c != nil && c.Reason == plan.Paced && c.Message == "begin the next change: it waits for its turn, because spec.changesPerMinute is 6"
			return reply{}
		}
		w.run()
		assert.Equal(t, api.PhaseCommitted, w.stored.Status.Phase)
		assert.Equal(t, noted, seen, perMinute)
	}
}
