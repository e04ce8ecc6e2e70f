package faults

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"janus.io/janus/test/faultinject"
)

// lessons are the runs without a fault, one for each workload.
var lessons struct {
	sync.Mutex
	known map[string]func() result
}

// learned runs a workload without a fault, once, and tells what that was like.
func (w *world) learned(of workload) result {
	lessons.Lock()
	if lessons.known == nil {
		lessons.known = map[string]func() result{}
	}
	learn, ok := lessons.known[of.Name]
	if !ok {
		learn = sync.OnceValue(func() result { return w.learn(of) })
		lessons.known[of.Name] = learn
	}
	lessons.Unlock()
	return learn()
}

// learn runs a workload until two runs agree about the calls. On a busy machine Janus
// may have to wait in one and not in another, and waiting costs calls.
func (w *world) learn(of workload) result {
	last := w.do(of, scenario{workload: of.Name})
	if isContest(of.Name) {
		return last // who was first makes each run another
	}
	for range 5 {
		next := w.do(of, scenario{workload: of.Name})
		if len(next.failures) > 0 || callsOf(last) == callsOf(next) {
			return next
		}
		next.calls, last = inBoth(next.calls, last.calls), next
	}
	return last
}

// inBoth leaves out calls that another run did not make: those that come of a wait, or of
// a controller that wrote in between, may never be made again.
func inBoth(calls, others []faultinject.Call) []faultinject.Call {
	made := map[faultinject.At]bool{}
	for _, call := range others {
		made[call.At] = true
	}
	return slices.DeleteFunc(slices.Clone(calls), func(call faultinject.Call) bool { return !made[call.At] })
}

// callsOf lists the names of calls, but not those that are sent side by side and at
// times of their own, in an order that is the same in every run.
func callsOf(r result) string {
	var names []string
	for _, call := range r.calls {
		if call.Kind != faultinject.Aside {
			names = append(names, call.String())
		}
	}
	slices.Sort(names)
	return strings.Join(names, "\n")
}

// plans lists everything that can happen at the calls of a workload.
func (w *world) plans(of workload) []scenario {
	var out []scenario
	targets := targetsOf(of)
	learned := w.learned(of)
	for _, call := range learned.calls {
		// Some requests are sent side by side, so their order says nothing.
		n := int(hash(call.String()) % perWorkload)
		add := func(what string) {
			out = append(out, scenario{workload: of.Name, events: []event{{call.At, what}}})
		}
		for i, fault := range call.Faults() {
			if (i+n)%of.every() != 0 {
				continue
			}
			add(string(fault))
		}
		for _, a := range acts {
			if !concerns(a, call, n, of) {
				continue
			}
			if !a.each {
				add(a.name)
				continue
			}
			for i := range targets {
				if len(targets) <= 2 || call.Resource == "transactions" || call.Name == targets[i] {
					add(fmt.Sprintf("%s:%d", a.name, i))
				}
			}
		}
	}
	return out
}

// every is how many calls share the events of one, for workloads that cost much.
func (w workload) every() int {
	switch w.Faults {
	case "few":
		return 3
	case "rare":
		return 16
	default:
		return 1
	}
}

// targetsOf names the objects that a workload changes, as far as acts go, in the order
// in which acts number them.
func targetsOf(of workload) []string {
	var out []string
	for _, change := range of.changed() {
		t, _ := change["target"].(map[string]any)
		kind, _ := t["kind"].(string)
		name, _ := t["name"].(string)
		late := kind == "CustomResourceDefinition" || kind == "Namespace" || kind == "Toy" || name == "inside"
		if late || strings.HasPrefix(name, "refused-") || slices.Contains(out, name) {
			continue
		}
		out = append(out, name)
	}
	return out[:min(len(out), 4)]
}

// concerns reports whether an act before a call is worth a run. Acts on targets come
// before every write and every read of a target or of the Transaction; what is
// changed around Janus comes before every write that lasts; what costs seconds comes
// before every third.
func concerns(a act, call faultinject.Call, n int, of workload) bool {
	lasting := call.Kind == faultinject.Write && !call.DryRun
	switch {
	case n%of.every() != 0:
		return false
	case a.class == "sources":
		return nearSource(a, call, of)
	case a.each:
		return lasting && call.Resource != "leases" || call.Kind == faultinject.Read && (call.User != "" && call.Method == "GET" || call.Resource == "transactions" && call.Name != "")
	case a.name == "namespace-deleted":
		return lasting && n%3 == 0 && of.Rights == ""
	case a.class == "rights" || a.class == "quota":
		return lasting && call.Resource != "leases" && of.Rights == ""
	default:
		return lasting
	}
}
