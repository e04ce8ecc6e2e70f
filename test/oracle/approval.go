package oracle

import (
	"encoding/json"
	"strings"

	api "janus.io/janus/api/v1alpha1"
)

// approval is what a stored Transaction says of its plan.
type approval struct {
	plans            int64
	digest, by, time string
}

func (a approval) given() bool { return a.digest != "" && a.by != "" && a.time != "" }

func readApproval(status map[string]any) approval {
	return approval{
		plans:  number(at(status, "approval", "plans")),
		digest: str(status, "approval", "digest"), by: str(status, "approval", "approvedBy"), time: str(status, "approval", "approvalTime"),
	}
}

// judgeApproval: a Transaction that needs approval changes nothing before its plan is approved,
// an approval is one that another user has written for the plan that stood, and the changes
// are those that the plan shows.
func (c *trial) judgeApproval(r *run) {
	if r.Spec.Approval == nil || !r.Spec.Approval.Required || r.Spec.DryRun {
		return
	}
	for _, w := range r.writes {
		if w.made == nil {
			continue
		}
		if s := r.before(w.made.Revision); s != nil && !s.approval.given() {
			c.breach(Approval, "%s made %s@%d, and %s (@%d) has no approval on record", w.At, w.ref, w.made.Revision, r, s.Revision)
		}
	}
	for n, s := range r.states {
		if n > 0 && s.by != nil {
			c.judgeApproved(r, r.states[n-1], s)
		}
	}
	c.judgePlanned(r)
}

// judgeApproved is about the step from one state to the next.
func (c *trial) judgeApproved(r *run, was, is *state) {
	switch {
	case is.approval.given() && is.approval != was.approval:
		plan, by := annotation(was, api.ApprovedPlanAnnotation), annotation(was, api.ApprovedByAnnotation)
		if plan != is.approval.digest || by != is.approval.by || was.approval.digest != is.approval.digest || was.approval.plans != is.approval.plans {
			c.breach(Approval, "%s has approval %+v (@%d), and before it (@%d) plan %+v stood, and the annotations said %q by %q",
				r, is.approval, is.Revision, was.Revision, was.approval, plan, by)
		}
	case is.approval.digest != "" && is.approval.digest != was.approval.digest && is.approval.plans != was.approval.plans+1:
		c.breach(Approval, "%s: plan %+v (@%d) follows %+v (@%d)", r, is.approval, is.Revision, was.approval, was.Revision)
	}
	if (is.phase == string(api.PhasePrepared) || is.phase == string(api.PhaseCommitting)) && !is.approval.given() {
		c.breach(Approval, "%s is %s (@%d) with approval %+v", r, is.phase, is.Revision, is.approval)
	}
}

// judgePlanned: what a change met is what the plan that was approved shows of it. Values of data
// are looked at, where they are shown whole.
func (c *trial) judgePlanned(r *run) {
	s := r.firstBegun()
	if s == nil {
		return
	}
	for i := range s.items {
		if i >= len(r.Items) || s.items[i].before == nil || c.objects[r.Items[i]] == nil {
			continue
		}
		met := c.objects[r.Items[i]].named(s.items[i].before.version)
		for _, f := range list(s.Object.Object, "status", "items") {
			if entry, _ := f.(map[string]any); str(entry, "name") == s.items[i].name {
				c.judgeShown(r, i, met, entry)
			}
		}
	}
}

func (c *trial) judgeShown(r *run, i int, met *version, entry map[string]any) {
	for _, f := range list(entry, "plan", "fields") {
		field, _ := f.(map[string]any)
		key, data := strings.CutPrefix(str(field, "field"), ".data.")
		before := str(field, "before")
		if !data || strings.ContainsAny(key, ".[") || strings.HasPrefix(before, "***") || strings.HasSuffix(before, "…") {
			continue
		}
		now := ""
		if met != nil {
			if value, there := at(met.Object.Object, "data", key).(string); there {
				text, _ := json.Marshal(value)
				now = string(text)
			}
		}
		if now != before {
			c.breach(Approval, "%s: the plan shows that .data.%s is %s, and its change met %s", r.named(i), key, before, now)
		}
	}
}

// firstBegun is the first state with an intent; nil if there is none.
func (r *run) firstBegun() *state {
	for _, s := range r.states {
		if s.phase == string(api.PhaseCommitting) {
			return s
		}
	}
	return nil
}
