package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
)

const planDigest = "5f2d"

// requires has the Transaction need approval.
func requires(w *world) { w.evidence.Runs[0].Spec.Approval = &api.Approval{Required: true} }

// stands records a plan.
func stands(w *world) {
	w.checkpoint(func(status tree) { status["approval"] = tree{"plans": int64(1), "digest": planDigest} })
}

// approves writes an approval, as another client, which Janus does not have to believe.
func approves(plan, by string) func(*world) {
	return func(w *world) {
		w.foreign(txn, "approver", func(o tree) {
			o["metadata"].(tree)["annotations"] = tree{api.ApprovedPlanAnnotation: plan, api.ApprovedByAnnotation: by}
		})
	}
}

// accepts records an approval.
func accepts(w *world) {
	w.checkpoint(func(status tree) {
		status["approval"] = tree{"plans": int64(1), "digest": planDigest, "approvedBy": "jane", "approvalTime": "2026-01-01T00:00:00Z"}
	})
}

func approving(steps ...func(*world)) hooks {
	return hooks{"lock": func(w *world) {
		requires(w)
		for _, step := range steps {
			step(w)
		}
	}}
}

// shows says that the plan has a field with a value.
func shows(field, before string) func(*world) {
	return func(w *world) {
		w.checkpoint(func(status tree) {
			status["items"].([]any)[0].(tree)["plan"] = tree{"fields": []any{tree{"field": field, "before": before}}}
		})
	}
}

func TestAnApprovedPlanIsNoBreach(t *testing.T) {
	assert.Empty(t, lines(commit(approving(stands, approves(planDigest, "jane"), accepts, shows(".data.never", ""))).breaches()))
}

func TestBrokenApprovalsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		steps   []func(*world)
		message string
	}{
		"nobody approves":                 {[]func(*world){stands}, "has no approval on record"},
		"nothing is asked":                {nil, "has no approval on record"},
		"it is prepared without":          {[]func(*world){stands}, "is Prepared (@"},
		"it is thought of":                {[]func(*world){stands, accepts}, `and the annotations said "" by ""`},
		"of another plan":                 {[]func(*world){stands, approves("other", "jane"), accepts}, `and the annotations said "other" by "jane"`},
		"by another":                      {[]func(*world){stands, approves(planDigest, "joe"), accepts}, `and the annotations said "5f2d" by "joe"`},
		"the plan shows what was not met": {[]func(*world){stands, approves(planDigest, "jane"), accepts, shows(".data.never", `"so"`)}, `the plan shows that .data.never is "so", and its change met `},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, commit(approving(c.steps...)).breaches(), Approval, c.message)
		})
	}
}
