package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/faultinject"
)

// nameOf is the name by which a failure tells of a plan of a small workload, and by which
// the plan is run again: WORKLOAD/CALL#n/FAULT, with a plus between two faults.
func nameOf(s scenario, injections []faultinject.Injection) string {
	var parts []string
	for _, in := range injections {
		parts = append(parts, in.At.String()+"/"+string(in.Fault))
	}
	return s.name + "/" + strings.Join(parts, "+")
}

// parsePlan reads such a name.
func parsePlan(name string) (workload string, injections []faultinject.Injection, err error) {
	workload, rest, _ := strings.Cut(name, "/")
	for part := range strings.SplitSeq(rest, "+") {
		hash, slash := strings.LastIndex(part, "#"), strings.LastIndex(part, "/")
		if hash < 0 || slash < hash {
			return "", nil, fmt.Errorf("want WORKLOAD/CALL#n/FAULT, or with +CALL#n/FAULT after it, got %q", name)
		}
		nth, err := strconv.Atoi(part[hash+1 : slash])
		if err != nil {
			return "", nil, fmt.Errorf("want a number after # in %q: %w", name, err)
		}
		injections = append(injections, faultinject.Injection{At: faultinject.At{Key: part[:hash], Nth: nth}, Fault: faultinject.Fault(part[slash+1:])})
	}
	return workload, injections, nil
}

// runAgain runs the plan of a small workload that has a name. What the workload does not
// meet would prove nothing, so that is a failure: each fault is one that can happen where
// the faults before it have led.
func runAgain(t *testing.T, name string) {
	t.Helper()
	workload, injections, err := parsePlan(name)
	require.NoError(t, err)
	all := small()
	i := slices.IndexFunc(all, func(s scenario) bool { return s.name == workload })
	require.GreaterOrEqual(t, i, 0, "there is no small workload %q", workload)
	healthy := healthyRun(t, all[i])
	so, after := healthy, -1
	for n, in := range injections {
		found := false
		each(so.calls, after, func(can faultinject.Injection) { found = found || can.At == in.At && can.Fault == in.Fault })
		require.True(t, found, "%s: after the %d faults before it, no %s can happen at %s", name, n, in.Fault, in.At)
		so = runOne(t, all[i], healthy.phases[0], injections[:n+1]...)
		after = sentOf(so.calls, in.At)
	}
}

// met reports whether a fault has happened at its call.
func met(calls []faultinject.Call, in faultinject.Injection) bool {
	return slices.ContainsFunc(calls, func(c faultinject.Call) bool {
		return c.At == in.At && c.Fault == in.Fault && slices.Contains(c.Faults(), in.Fault)
	})
}

// TestWhatHasShownADefectDoesSoNoMore runs plans that have shown one: those that are run by default are
// every so many-th alone.
func TestWhatHasShownADefectDoesSoNoMore(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"diamond/GET configmaps#0/truncated",
		"twice-undone/GET transactions#0/truncated",
	} {
		runAgain(t, name)
	}
}

func TestANameOfAPlanIsReadAsItIsWritten(t *testing.T) {
	for _, name := range []string{
		"patch/PATCH configmaps/alpha#0/crash-after",
		"patch/PATCH?dryRun configmaps/alpha#0/409+PUT transactions/txn-0/status#2/crash-before",
	} {
		workload, injections, err := parsePlan(name)
		require.NoError(t, err)
		assert.Equal(t, name, nameOf(scenario{name: workload}, injections))
	}
	for _, name := range []string{"patch", "patch/", "patch/PATCH configmaps/alpha/crash-after", "patch/PATCH configmaps/alpha#one/late"} {
		_, _, err := parsePlan(name)
		assert.Error(t, err, name)
	}
}
