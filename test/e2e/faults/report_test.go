package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// report counts what became of plans, and says what went wrong as it happens.
type report struct {
	t     *testing.T
	begin time.Time
	of    int

	mu     sync.Mutex
	done   int
	counts map[string]map[string]*count // by workload, then by class
	busy   time.Duration
	// repeated counts plans whose call was not made in the first run.
	repeated int
}

type count struct{ plans, failed, missed int }

func newReport(t *testing.T, of int) *report {
	return &report{t: t, of: of, begin: time.Now(), counts: map[string]map[string]*count{}}
}

// again counts a plan that is run again, because its call was not made.
func (r *report) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.repeated++
}

// add enters one result.
func (r *report) add(out result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// What Janus does after a first fault depends on the moment, so the second of a pair
	// may be missed; it is counted.
	second := len(out.plan.events) == 2 && len(out.missed) == 1 && out.missed[0] == out.plan.events[1].at
	// So may any call of a contest, as each depends on who was first; but who asks for a
	// plan by its name is not told that all is well when it was not run.
	excused := !out.plan.named && (second || out.waited || isContest(out.plan.workload))
	if len(out.missed) > 0 && len(out.failures) == 0 && !excused {
		out.failures = append(out.failures, fmt.Sprintf("what was planned has not happened at %v", out.missed))
	}
	classes := r.counts[out.plan.row()]
	if classes == nil {
		classes = map[string]*count{}
		r.counts[out.plan.row()] = classes
	}
	class := out.plan.class()
	if classes[class] == nil {
		classes[class] = &count{}
	}
	c := classes[class]
	c.plans++
	r.done++
	r.busy += out.took
	if len(out.missed) > 0 {
		c.missed++
	}
	if len(out.failures) > 0 {
		c.failed++
		r.t.Errorf("%s\n  %s\n%s\nreplay: make faults FAULTS_PLAN='%s'\n%s%s",
			out.plan, strings.Join(out.failures, "\n  "), describe(out.ended), out.plan, out.plan.again(), r.details(out))
	} else if r.of == 1 && *verbose {
		r.t.Log(r.details(out))
	}
	if r.done%100 == 0 || r.done == r.of {
		took := time.Since(r.begin)
		r.t.Logf("%d of %d plans in %s, %.1f a second, %.2fs each", r.done, r.of, took.Round(time.Second),
			float64(r.done)/took.Seconds(), r.busy.Seconds()/float64(r.done))
	}
}

// describe says how Transactions have ended.
func describe(ended []*api.Transaction) string {
	var out []string
	for _, t := range ended {
		out = append(out, harness.Describe(t))
	}
	return strings.Join(out, "\n")
}

// details show the calls and the log of a plan that was asked for by name.
func (r *report) details(out result) string {
	if r.of > 1 && !*verbose {
		return ""
	}
	var b strings.Builder
	b.WriteString("\ncalls:\n")
	for _, c := range out.calls {
		fmt.Fprintf(&b, "  %d:%d-%d %s %d %s %s\n", c.Process, c.Sent, c.Answered, c.At, c.Code, c.Fault, strings.TrimPrefix(c.User, "system:serviceaccount:"))
		if strings.Contains(c.Key, *answersOf) && *answersOf != "" {
			fmt.Fprintf(&b, "    sent %s\n    answered %s\n", c.Body, c.Answer)
		}
	}
	return b.String() + "log:\n" + out.log
}

// end prints the table.
func (r *report) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Log("\n" + r.markdown())
}

// markdown is the table of results.
func (r *report) markdown() string {
	classes := map[string]bool{}
	for _, row := range r.counts {
		for class := range row {
			classes[class] = true
		}
	}
	columns := slices.Sorted(maps.Keys(classes))
	var b strings.Builder
	fmt.Fprintf(&b, "| workload | %s | all | failed |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---:|", len(columns)+2))
	total := map[string]int{}
	for _, workload := range slices.Sorted(maps.Keys(r.counts)) {
		row := r.counts[workload]
		fmt.Fprintf(&b, "| %s |", workload)
		plans, failed := 0, 0
		for _, class := range columns {
			c := row[class]
			if c == nil {
				b.WriteString(" |")
				continue
			}
			plans, failed = plans+c.plans, failed+c.failed
			total[class] += c.plans
			total["missed"] += c.missed
			fmt.Fprintf(&b, " %s |", cell(c))
		}
		total["all"], total["failed"] = total["all"]+plans, total["failed"]+failed
		fmt.Fprintf(&b, " %d | %d |\n", plans, failed)
	}
	b.WriteString("| **all** |")
	for _, class := range columns {
		fmt.Fprintf(&b, " %d |", total[class])
	}
	took := time.Since(r.begin)
	fmt.Fprintf(&b, " %d | %d |\n\n%d plans in %s, %d at once; %d failed; %d did not reach their call, and %d did at a further attempt.\n",
		total["all"], total["failed"], total["all"], took.Round(time.Second), *atOnce, total["failed"], total["missed"], r.repeated-total["missed"])
	return b.String()
}

func cell(c *count) string {
	if c.failed == 0 {
		return fmt.Sprint(c.plans)
	}
	return fmt.Sprintf("%d (%d failed)", c.plans, c.failed)
}
