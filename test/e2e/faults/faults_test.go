package faults

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"janus.io/janus/test/faultinject"
)

// TestPlans runs a sample of the plans that is spread evenly over workloads and
// faults, or with -all every plan of the share.
func TestPlans(t *testing.T) {
	w := newWorld(t)
	all := w.enumerate(t)
	t.Logf("%d plans in all", len(all))
	writeList(t, all)
	chosen := share(t, matching(t, all))
	if !*allFlag {
		chosen = sample(chosen, *sampleOf)
	}
	w.runAll(t, chosen)
}

// TestPlan runs the plan that -plan names, and without it those of
// testdata/regressions, each of which has failed once.
func TestPlan(t *testing.T) {
	names := []string{*planFlag}
	if *planFlag == "" {
		content, err := testdata.ReadFile("testdata/regressions")
		require.NoError(t, err)
		names = nil
		for line := range strings.Lines(string(content)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				names = append(names, line)
			}
		}
	}
	w := newWorld(t)
	var chosen []scenario
	for _, name := range names {
		chosen = append(chosen, w.called(t, name)...)
	}
	for i := range chosen {
		chosen[i].named = true
	}
	w.runAll(t, chosen)
}

// enumerate learns every workload and lists every plan, in an order that does not
// change.
func (w *world) enumerate(t *testing.T) []scenario {
	t.Helper()
	some, err := regexp.Compile(*onWork)
	require.NoError(t, err)
	list := slices.DeleteFunc(workloads(t), func(of workload) bool { return !some.MatchString(of.Name) })
	require.NotEmpty(t, list, "no workload matches -workloads=%s", *onWork)
	found := make([][]scenario, len(list))
	var wait sync.WaitGroup
	slots := make(chan struct{}, *atOnce)
	for i, of := range list {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			found[i] = w.plans(of)
		})
	}
	wait.Wait()
	for _, of := range list {
		learned := w.learned(of)
		for _, failure := range learned.failures {
			t.Errorf("%s: %s", of.Name, failure)
		}
	}
	for i, of := range list {
		t.Logf("%5d plans of %s", len(found[i]), of.Name)
	}
	return slices.Concat(found...)
}

func matching(t *testing.T, all []scenario) []scenario {
	t.Helper()
	only, err := regexp.Compile(*onlyFlag)
	require.NoError(t, err)
	some := slices.DeleteFunc(slices.Clone(all), func(p scenario) bool { return !only.MatchString(p.String()) })
	require.NotEmpty(t, some, "no plan matches -only=%s", *onlyFlag)
	return some
}

// share takes one of n shares. Which plan is in which does not depend on what else was
// learned: the shares may be run on different machines.
func share(t *testing.T, all []scenario) []scenario {
	t.Helper()
	text, of, _ := strings.Cut(*shardFlag, "/")
	i, err1 := strconv.ParseUint(text, 10, 32)
	n, err2 := strconv.ParseUint(of, 10, 32)
	require.True(t, err1 == nil && err2 == nil && i < n, "want -shard=i/n, got %q", *shardFlag)
	var out []scenario
	for _, p := range all {
		if p.number()%n == i {
			out = append(out, p)
		}
	}
	return out
}

// sample takes so many plans: one after the other of each pair of workload and
// class, in an order that the seed says.
func sample(all []scenario, size int) []scenario {
	groups := map[string][]scenario{}
	var names []string
	for _, p := range all {
		name := p.workload + "/" + p.class()
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], p)
	}
	salt := func(s string) uint64 { return hash(s, *seedFlag) }
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(salt(a), salt(b)) })
	for _, name := range names {
		slices.SortFunc(groups[name], func(a, b scenario) int { return cmp.Compare(salt(a.String()), salt(b.String())) })
	}
	var out []scenario
	for round := 0; len(out) < min(size, len(all)); round++ {
		for _, name := range names {
			if round < len(groups[name]) && len(out) < size {
				out = append(out, groups[name][round])
			}
		}
	}
	return out
}

// attempts is how often a plan is run that does not reach its call before a run without a fault
// has to show that the call is made: Janus makes other calls in a run in which it had to wait,
// and where a controller writes its target too. A call that some runs make and others do not can
// be missed that often by chance, so rounds is how often both are done.
const attempts, rounds = 5, 3

// runAll runs plans side by side and reports them.
func (w *world) runAll(t *testing.T, chosen []scenario) {
	t.Helper()
	byName := map[string]workload{}
	for _, of := range workloads(t) {
		byName[of.Name] = of
	}
	report := newReport(t, len(chosen))
	var wait sync.WaitGroup
	slots := make(chan struct{}, *atOnce)
	for _, p := range chosen {
		of, ok := byName[p.workload]
		if isContest(p.workload) {
			of, ok = contestOf(p.workload).workload(), true
		}
		require.True(t, ok, "there is no workload %q", p.workload)
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			report.add(w.reach(of, p, report))
		})
	}
	wait.Wait()
	report.end()
	if *table != "" {
		require.NoError(t, os.WriteFile(*table, []byte(report.markdown()), 0o600))
	}
}

// reach runs a plan until its call is made, it fails, or it turns out that the call is not made in
// every run, whatever the plan.
func (w *world) reach(of workload, p scenario, report *report) (out result) {
	for round := range rounds {
		for attempt := range attempts {
			if round == 0 && attempt == 1 {
				report.again()
			}
			out = w.do(of, p)
			if len(out.missed) == 0 || len(out.failures) > 0 {
				return out
			}
		}
		out.waited = out.onlyWhileBorne() || w.onlyAfterAWait(of, out)
		if out.waited {
			return out
		}
	}
	return out
}

// onlyWhileBorne reports whether what was missed is a call that was not made as often: while
// a refusal is borne, for five seconds, Janus asks for the change again and again, and how often
// depends on the machine.
func (r result) onlyWhileBorne() bool {
	made, refused := map[string]int{}, 0
	for _, call := range r.calls {
		made[call.Key]++
		if strings.HasPrefix(call.Name, "refused-") {
			refused++
		}
	}
	const borne = 6
	return refused >= borne && !slices.ContainsFunc(r.missed, func(at faultinject.At) bool { return at.Nth < borne || at.Nth < made[at.Key] })
}

// onlyAfterAWait reports whether in a run without a fault there is no call either at which
// what was missed could happen: it came of a wait, or of a controller that wrote in
// between, in both runs from which the plans were learned.
func (w *world) onlyAfterAWait(of workload, out result) bool {
	calls := w.do(of, scenario{workload: of.Name}).calls
	return len(calls) > 0 && !slices.ContainsFunc(out.plan.events, func(e event) bool {
		return slices.Contains(out.missed, e.at) && slices.ContainsFunc(calls, e.canHappen)
	})
}
