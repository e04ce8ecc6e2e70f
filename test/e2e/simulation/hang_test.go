package simulation

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
)

// hang is for how long a process stands still: longer than any lock lasts, and than it
// takes another process to come to an end.
const hang = 10 * time.Minute

// TestTwoProcessesOfWhichOneHangs lets one of two processes stand still before any of
// its requests, until the other has made an end, and go on then.
func TestTwoProcessesOfWhichOneHangs(t *testing.T) {
	t.Parallel()
	for _, s := range small() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			healthy := simulate(t, script{scenario: s, seed: 1})
			for step := 0; step < healthy.steps; step += *every {
				o := simulate(t, script{scenario: s, seed: 1, machines: 2, choose: hanging(step)})
				assert.Empty(t, o.breaches, "%s, hung at %d: %s", s.name, step, o)
				assert.Equal(t, healthy.phases, o.phases, "%s, hung at %d", s.name, step)
			}
		})
	}
}

// TestTwoProcessesHangInTurn lets the first of two processes stand still before any of its
// requests, and the second before any after that. Then the first goes on with what the
// second has left half-way, and knows of the Transaction what has not been so for long.
func TestTwoProcessesHangInTurn(t *testing.T) {
	t.Parallel()
	for _, s := range small() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			healthy := simulate(t, script{scenario: s, seed: 1})
			runs := 0
			for i := 0; i < healthy.steps; i += *every {
				for j := 1; j <= healthy.steps; j += *every {
					o := simulate(t, script{scenario: s, seed: 1, machines: 2, choose: inTurn(i, j)})
					assert.Empty(t, o.breaches, "%s, hung at %d and %d later: %s", s.name, i, j, o)
					assert.Equal(t, healthy.phases, o.phases, "%s, hung at %d and %d later", s.name, i, j)
					runs++
				}
			}
			t.Logf("%d runs", runs)
		})
	}
}

// inTurn has the first process stand still from step i on, and the second from j steps
// later on, for twice as long.
func inTurn(i, j int) func(*world, []*held) *held {
	hung := [2]bool{}
	return func(w *world, ready []*held) *held {
		first, last := ready[0], ready[len(ready)-1]
		switch {
		case !hung[0] && w.step >= i && last.process == 1 && !creating(0, ready):
			hung[0], j = true, j+w.step
			w.frozen[0] = time.Now().Add(hang)
			w.note("process 0 hangs")
			return last
		case hung[0] && !hung[1] && w.step >= j && first.process == 1 && !creating(1, ready):
			hung[1] = true
			w.frozen[1] = time.Now().Add(2 * hang)
			w.note("process 1 hangs")
			return nil
		}
		return first
	}
}

// TestTwoProcessesOfWhichOneComesBack ends the work of one of two processes on a Transaction
// right after any write of its status, as happens when another Transaction is to have its
// worker, and gives it no turn for a while. The other goes on, and stands still before any of
// its requests. Then the first has the Transaction again, and knows what has not been so since.
func TestTwoProcessesOfWhichOneComesBack(t *testing.T) {
	t.Parallel()
	for _, s := range small() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			healthy := simulate(t, script{scenario: s, seed: 1})
			writes, runs, stride, never := 0, 0, max(1, *every/2), false
			// Two processes may need fewer writes than one, where one of them has waited for another Transaction.
			left := simulate(t, script{scenario: s, seed: 1, machines: 2, choose: comingBack(math.MaxInt, 0, &never)})
			for _, c := range left.calls {
				if c.Resource == api.Resource.Resource && c.Subresource == "status" {
					writes++
				}
			}
			require.Positive(t, writes)
			for i := range writes {
				for j := 5 * i % stride; j < healthy.steps; j += stride {
					interrupted := false
					o := simulate(t, script{scenario: s, seed: 1, machines: 2, choose: comingBack(i, j, &interrupted)})
					assert.True(t, interrupted, "%s, there is no write %d", s.name, i)
					assert.Empty(t, o.breaches, "%s, interrupted after write %d, the other hung %d later: %s", s.name, i, j, o)
					assert.Equal(t, healthy.phases, o.phases, "%s, interrupted after write %d, the other hung %d later", s.name, i, j)
					runs++
				}
			}
			t.Logf("%d runs", runs)
		})
	}
}

// comingBack interrupts a process after the i-th write of a status, and has the other stand
// still some steps later, for twice as long.
func comingBack(i, j int, interrupted *bool) func(*world, []*held) *held {
	writes, writer, hung := 0, 0, false
	return func(w *world, ready []*held) *held {
		first := ready[0]
		switch {
		case !*interrupted && strings.HasPrefix(first.name, "PUT ") && strings.Contains(first.name, "/status?"):
			if writes++; writes > i {
				*interrupted, writer, j = true, first.process, j+w.step
				for _, name := range w.names() {
					w.machines[writer].interrupt(name, false)
				}
				w.frozen[writer] = time.Now().Add(hang)
				w.note("process %d has no turn", writer)
			}
		case *interrupted && !hung && w.step >= j && first.process != writer && !creating(first.process, ready):
			hung = true
			w.frozen[first.process] = time.Now().Add(2 * hang)
			w.note("process %d hangs", first.process)
			return nil
		}
		return first
	}
}

// hanging prefers the requests of the first process until some step, and has it stand
// still then.
func hanging(step int) func(*world, []*held) *held {
	hung := false
	return func(w *world, ready []*held) *held {
		last := ready[len(ready)-1]
		if !hung && w.step >= step && last.process == 1 && !creating(0, ready) {
			hung = true
			w.frozen[0] = time.Now().Add(hang)
			w.note("process 0 hangs")
			return last
		}
		return ready[0]
	}
}

// creating reports whether a process is about to make a target. A creation has
// no precondition, so that one made after a hang cannot be told from one made in time.
func creating(process int, ready []*held) bool {
	for _, h := range ready {
		if h.process == process && strings.HasPrefix(h.name, "POST ") && strings.HasSuffix(h.name, ":deployer") && !strings.Contains(h.name, "dryRun") {
			return true
		}
	}
	return false
}

// TestTwoProcessesOfWhichOneStops stops one of two processes after any of its requests was
// answered, as SIGSTOP does. When it goes on it finds the answer, and the other has made
// an end meanwhile.
func TestTwoProcessesOfWhichOneStops(t *testing.T) {
	t.Parallel()
	for _, s := range small() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			healthy := simulate(t, script{scenario: s, seed: 1})
			for step := 0; step < healthy.steps; step += max(1, *every/8) {
				o := simulate(t, script{scenario: s, seed: 1, machines: 2, choose: stopping(step)})
				assert.Empty(t, o.breaches, "%s, stopped at %d: %s", s.name, step, o)
				assert.Equal(t, healthy.phases, o.phases, "%s, stopped at %d", s.name, step)
			}
		})
	}
}

// stopping prefers the requests of the first process, and stops it with the answer to
// one of some step on.
func stopping(step int) func(*world, []*held) *held {
	stopped := false
	return func(w *world, ready []*held) *held {
		if !stopped && w.step >= step && ready[0].process == 0 {
			stopped = true
			w.frozen[0] = time.Now().Add(hang)
			w.scheduler.stop(0, hang)
			w.note("process 0 stops")
		}
		return ready[0]
	}
}

// rivals are two Transactions of which the second wants what the first changes last.
func rivals() scenario {
	alpha, beta := pool[0], pool[1]
	s := scenario{name: "rivals"}
	for _, t := range []thing{alpha, beta} {
		s.objects = append(s.objects, t.with(old))
	}
	short := api.Duration("10s")
	for n, things := range [][]thing{{alpha, beta}, {beta}} {
		spec := api.TransactionSpec{ServiceAccountName: "deployer", LockTimeout: &short}
		for _, t := range things {
			spec.Changes = append(spec.Changes, t.change(api.Patch, map[string]string{"a": fmt.Sprintf("new-%d", n)}))
		}
		s.transactions = append(s.transactions, spec)
	}
	return s
}

// orders is how many orders of requests are tried at each step.
const orders = 4

// TestTwoTransactionsBearAHang lets two Transactions want one target, while everything
// stands still, at any step, for longer than a lock lasts, and not as long as a request
// is waited for. Then the lock is anyone's.
func TestTwoTransactionsBearAHang(t *testing.T) {
	t.Parallel()
	disturb(t, 1, func(w *world) {
		w.frozen[0] = time.Now().Add(requestTimeout - time.Second)
		w.note("everything hangs")
	})
}

// TestTwoTransactionsBearAnotherClock replaces one of two processes, at any step, by one
// whose clock is ten minutes ahead. What that one reads of times is not of its own.
func TestTwoTransactionsBearAnotherClock(t *testing.T) {
	t.Parallel()
	disturb(t, 2, func(w *world) {
		w.skew = hang
		w.machines[len(w.machines)-1].process.Crash()
		w.note("another process with another clock")
	})
}

// disturb has something happen once, at every step in several orders of requests.
func disturb(t *testing.T, machines int, what func(*world)) {
	t.Helper()
	s := rivals()
	healthy := simulate(t, script{scenario: s, seed: 1, machines: machines})
	n, runs := 0, 0
	for step := range healthy.steps {
		for seed := range uint64(orders) {
			if n++; n%*every != 0 {
				continue
			}
			done := false
			o := simulate(t, script{scenario: s, seed: seed, machines: machines, choose: func(w *world, ready []*held) *held {
				if !done && w.step >= step {
					done = true
					what(w)
				}
				return ready[w.random.IntN(len(ready))]
			}})
			assert.Empty(t, o.breaches, "at step %d, seed %d: %s", step, seed, o)
			runs++
		}
	}
	t.Logf("%d runs", runs)
}
