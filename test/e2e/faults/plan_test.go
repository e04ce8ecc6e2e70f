package faults

import (
	"fmt"
	"strconv"
	"strings"

	"janus.io/janus/test/faultinject"
)

// scenario is one run of a workload in which something happens at one call, or at two.
type scenario struct {
	workload string
	events   []event
	// named is set for a plan that was asked for: if what it says does not happen, nothing
	// was run.
	named bool
	// drawn says how a plan that a seed has drawn is drawn again.
	drawn string
}

// event is what happens at one call: a fault of faultinject, or an act of
// another client just before it.
type event struct {
	at   faultinject.At
	what string
}

// canHappen reports whether a call is the one of an event, and such that it makes a
// difference there.
func (e event) canHappen(call faultinject.Call) bool {
	return call.At == e.at && (isAct(e.what) || contains(call.Faults(), faultinject.Fault(e.what)))
}

// String is the name by which the plan is replayed.
func (p scenario) String() string {
	var parts []string
	for _, e := range p.events {
		parts = append(parts, fmt.Sprintf("%s/%s/%s", p.workload, e.at, e.what))
	}
	if len(parts) == 0 {
		return p.workload
	}
	return strings.Join(parts, joint)
}

// joint is between the two faults of a pair.
const joint = " + "

// parsePlan reads the name of a plan.
func parsePlan(name string) (scenario, error) {
	var p scenario
	for _, part := range strings.Split(name, joint) {
		workload, rest, ok := strings.Cut(part, "/")
		p.workload = workload
		if !ok {
			continue
		}
		slash := strings.LastIndex(rest, "/")
		hash := strings.LastIndex(rest, "#")
		if slash < 0 || hash < 0 || hash > slash {
			return scenario{}, fmt.Errorf("want workload/CALL#n/what, got %q", part)
		}
		nth, err := strconv.Atoi(rest[hash+1 : slash])
		if err != nil {
			return scenario{}, fmt.Errorf("want workload/CALL#n/what, got %q: %w", part, err)
		}
		p.events = append(p.events, event{faultinject.At{Key: rest[:hash], Nth: nth}, rest[slash+1:]})
	}
	return p, nil
}

// again says how the plan is run by a number.
func (p scenario) again() string {
	if p.drawn != "" {
		return p.drawn
	}
	return fmt.Sprintf("    or: make faults FAULTS_PLAN=%d", p.number())
}

// row is where the plan counts in the table.
func (p scenario) row() string {
	if isContest(p.workload) {
		return contestOf(p.workload).row()
	}
	return p.workload
}

// class sorts plans for the table.
func (p scenario) class() string {
	switch len(p.events) {
	case 0:
		return "no fault"
	case 1:
		return classOf(p.events[0].what)
	default:
		return "pairs"
	}
}

func classOf(what string) string {
	fault := faultinject.Fault(what)
	switch {
	case isAct(what):
		return actClass(what)
	case fault == faultinject.CrashBefore || fault == faultinject.CrashAfter:
		return "crashes"
	case fault == faultinject.Late || fault == faultinject.LateAfterRestart:
		return "late requests"
	case contains(faultinject.Watches, fault) && !contains(faultinject.Reads, fault) && !contains(faultinject.Writes, fault):
		return "watches"
	case contains(faultinject.Reads, fault) && !contains(faultinject.Writes, fault):
		return "reads"
	default:
		return "answers of writes"
	}
}

func contains(list []faultinject.Fault, f faultinject.Fault) bool {
	for _, known := range list {
		if known == f {
			return true
		}
	}
	return false
}
