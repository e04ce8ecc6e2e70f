package crossplane

import (
	"cmp"
	"flag"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/harness"
)

var (
	allFlag   = flag.Bool("all", false, "run every fault plan of the share, not the sample")
	sampleOf  = flag.Int("sample", 8, "how many fault plans of each operation are run without -all")
	seedFlag  = flag.Int64("seed", 1, "the seed of the sample of fault plans")
	shardFlag = flag.String("shard", "0/1", "which share of the fault plans is run, as i/n with i from 0")
	planFlag  = flag.String("plan", "", "the name of the one fault plan that is run")
)

// kinds are the faults that are injected. Those that are left out are told from these by the
// answer alone, and test/e2e/faults has them at every request: here the faults meet another
// controller, which writes the same objects meanwhile.
var kinds = []faultinject.Fault{
	faultinject.CrashBefore, faultinject.CrashAfter, faultinject.LostReply, faultinject.Late, faultinject.LateAfterRestart, faultinject.Conflict, faultinject.Failed,
	faultinject.Stale, faultinject.FalseNotFound, faultinject.ReadFailed, faultinject.Truncated,
	faultinject.Dropped, faultinject.Frozen,
}

// faultPlan is one run: of an operation in which one request meets one fault.
type faultPlan struct {
	operation string
	at        faultinject.At
	fault     faultinject.Fault
}

// String is the name by which -plan runs it again.
func (p faultPlan) String() string { return fmt.Sprintf("%s/%s/%s", p.operation, p.at, p.fault) }

// number depends on the name alone, and so does which share a plan is in.
func (p faultPlan) number(salt int64) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %s", salt, p)
	return h.Sum64()
}

// Whatever request of a change of packages meets whatever fault, the change ends as it would have, and
// leaves what it would have left: packages, revisions, Crossplane's Lock, definitions and who
// controls them, what runs, and the custom resources.
func TestEveryRequestMeetsAFault(t *testing.T) {
	w := newWorldWithoutJanus(t)
	b := newBench(w)
	count := counting{t: t, begin: time.Now()}
	for _, s := range b.scenes() {
		if *planFlag == "" || slices.ContainsFunc(s.operations, func(op operation) bool { return strings.HasPrefix(*planFlag, op.name+"/") }) {
			b.play(s, &count)
		}
	}
	count.end()
}

// counting counts plans.
type counting struct {
	t                          *testing.T
	begin                      time.Time
	plans, ran, missed, failed int
	repeated                   int
}

func (c *counting) end() {
	c.t.Helper()
	c.t.Logf("%d fault plans, of which %d ran in %s; %d failed; %d did not reach their request, and %d did at a further attempt",
		c.plans, c.ran, time.Since(c.begin).Round(time.Second), c.failed, c.missed, c.repeated)
	require.Positive(c.t, c.ran)
	require.Less(c.t, 4*c.missed, c.ran, "too many plans did not reach their request")
}

// learned is what an operation is without a fault.
type learned struct {
	calls []faultinject.Call
	end   []string
}

// pending is a plan that is to be run.
type pending struct {
	faultPlan
	attempts int
}

// play runs a scene: without a fault until two runs end alike, and then once for each plan.
func (b *bench) play(s scene, count *counting) {
	b.t.Helper()
	s.begin()
	known := b.learn(s)
	queues := make([][]pending, len(s.operations))
	for i, op := range s.operations {
		all := plansOf(op.name, known[i].calls)
		queues[i] = b.chosen(all)
		count.plans += len(all)
		b.t.Logf("%s: %d requests, %d fault plans, of which %d are chosen", op.name, len(known[i].calls), len(all), len(queues[i]))
	}
	left := func() bool {
		return slices.ContainsFunc(queues, func(q []pending) bool { return len(q) > 0 })
	}
	for left() {
		for i, op := range s.operations {
			if !b.plays(op, &queues[i], known[i], count) {
				b.reset()
				s.begin()
				break
			}
		}
		b.tidy()
	}
	b.reset()
}

// attempts is how often a plan is run that does not reach its request: how often Janus reads
// what Crossplane writes depends on when that does.
const attempts = 3

// plays runs the next plan, or the operation alone if there is none, and reports whether the next
// operation can begin.
func (b *bench) plays(op operation, queue *[]pending, known learned, count *counting) bool {
	b.t.Helper()
	if len(*queue) == 0 {
		out := b.run(op, known.end)
		return b.judged(op.name, out, count)
	}
	next := (*queue)[0]
	*queue = (*queue)[1:]
	out := b.run(op, known.end, faultinject.Injection{At: next.at, Fault: next.fault})
	next.attempts++
	switch {
	case !out.missed:
		count.ran++
		if next.attempts > 1 {
			count.repeated++
		}
	case next.attempts < attempts:
		*queue = append(*queue, next)
	default:
		count.missed++
		if *planFlag != "" {
			b.t.Errorf("%s: the request was not made", next)
		}
	}
	return b.judged(next.String(), out, count)
}

// judged reports whether no promise was broken.
func (b *bench) judged(name string, out outcome, count *counting) bool {
	b.t.Helper()
	if len(out.failures) == 0 {
		return true
	}
	count.failed++
	b.t.Errorf("%s\n  %s\n%s\nagain: go test ./test/e2e/crossplane -run TestEveryRequestMeetsAFault -v -plan='%s'\n%s",
		name, strings.Join(out.failures, "\n  "), harness.Describe(out.txn), name, details(out))
	return false
}

// learn runs the operations of a scene until two rounds in turn end alike. Requests that only one
// of these makes are left out.
func (b *bench) learn(s scene) []learned {
	b.t.Helper()
	const most = 5
	last := make([]learned, len(s.operations))
	begun := b.looked(seen{})
	for range most {
		alike := true
		next := make([]learned, len(s.operations))
		for i, op := range s.operations {
			out := b.run(op, nil)
			require.Empty(b.t, out.failures, "%s: %s\n%s", op.name, harness.Describe(out.txn), details(out))
			if other := difference(last[i].end, out.end.lines); other != "" {
				alike = false
				b.t.Logf("%s without a fault ends with:%s", op.name, other)
			}
			next[i] = learned{calls: out.calls, end: out.end.lines}
			require.Empty(b.t, out.end.lost(begun), "custom resources that were lost")
		}
		require.Empty(b.t, difference(begun.lasting(), b.looked(begun).lasting()), "what is not as before the first operation")
		b.tidy()
		if alike {
			for i := range next {
				next[i].calls = inBoth(next[i].calls, last[i].calls)
			}
			return next
		}
		last = next
	}
	require.Fail(b.t, "no two runs without a fault end alike")
	return nil
}

// inBoth leaves out the calls that another run did not make.
func inBoth(calls, others []faultinject.Call) []faultinject.Call {
	made := map[faultinject.At]bool{}
	for _, c := range others {
		made[c.At] = true
	}
	return slices.DeleteFunc(slices.Clone(calls), func(c faultinject.Call) bool { return !made[c.At] })
}

// plansOf lists every fault of every request.
func plansOf(operation string, calls []faultinject.Call) (out []faultPlan) {
	for _, c := range calls {
		for _, fault := range c.Faults() {
			if slices.Contains(kinds, fault) {
				out = append(out, faultPlan{operation, c.At, fault})
			}
		}
	}
	return out
}

// chosen are the plans that the flags ask for, in an order that the seed says.
func (b *bench) chosen(all []faultPlan) (out []pending) {
	b.t.Helper()
	text, of, _ := strings.Cut(*shardFlag, "/")
	i, err1 := strconv.ParseUint(text, 10, 32)
	n, err2 := strconv.ParseUint(of, 10, 32)
	require.True(b.t, err1 == nil && err2 == nil && i < n, "want -shard=i/n, got %q", *shardFlag)
	for _, p := range all {
		if p.number(0)%n == i && (*planFlag == "" || *planFlag == p.String()) {
			out = append(out, pending{faultPlan: p})
		}
	}
	slices.SortFunc(out, func(a, b pending) int { return cmp.Compare(a.number(*seedFlag), b.number(*seedFlag)) })
	if !*allFlag && *planFlag == "" {
		out = out[:min(*sampleOf, len(out))]
	}
	return out
}

// details are the requests of a run, and what Janus has logged.
func details(out outcome) string {
	var b strings.Builder
	b.WriteString("requests:\n")
	for _, c := range out.calls {
		fmt.Fprintf(&b, "  %d:%d-%d %s %d %s %s\n", c.Process, c.Sent, c.Answered, c.At, c.Code, c.Fault, strings.TrimPrefix(c.User, "system:serviceaccount:"))
	}
	return b.String() + "log:\n" + out.log
}
