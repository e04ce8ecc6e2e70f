package oracle

import (
	"cmp"
	"slices"

	"janus.io/janus/test/faultinject"
)

// Step is a version of a Transaction or of one of its targets: what has come into effect.
type Step struct {
	*Version
	// Before is the version before it; nil if there was none.
	Before *Version
	// Item is whose target it is; -1 for the Transaction itself.
	Item int
	// By is the request of Janus that has made it; nil if another client has.
	By *faultinject.Call
}

// Steps returns what came into effect of the n-th Transaction of a run and of its targets,
// in order.
func Steps(e Evidence, n int) []Step {
	c := newCase(e)
	var out []Step
	enter := func(o *object, item int) {
		for _, v := range o.all() {
			s := Step{Version: v.Version, Item: item}
			if v.before != nil {
				s.Before = v.before.Version
			}
			if v.by != nil {
				s.By = v.by.Call
			}
			out = append(out, s)
		}
	}
	r := c.runs[n]
	enter(c.objects[r.ref], -1)
	for i, target := range r.Items {
		enter(c.objects[target], i)
	}
	slices.SortStableFunc(out, func(a, b Step) int { return cmp.Compare(a.Revision, b.Revision) })
	return out
}
