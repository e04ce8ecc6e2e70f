package controller

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// An Unended is a Transaction that has not ended, as the metrics tell of it.
type Unended struct {
	Name types.NamespacedName
	// Reason is one of Reasons.
	Reason string
	// Since is when it was begun, or created if it has not been begun.
	Since time.Time
	// HalfTime is when half of its spec.timeout is over, or half of that of its rollback; zero
	// while it is suspended, or waits for approval, or has not been begun.
	HalfTime time.Time
}

const (
	// reasonRunning is that of a Transaction that waits for nothing, or for a worker.
	reasonRunning = "Running"
	// reasonOther is that of one that waits for what has no reason below.
	reasonOther = "Other"
	// What only waits has, as the engine calls it.
	reasonAwaitingApproval, reasonNotReady, reasonPaced = "AwaitingApproval", "NotReady", "Paced"
	reasonSettling, reasonSuspended                     = "Settling", "Suspended"
)

// Reasons are what Transactions can be waiting for, as labels have it: the values are these,
// whatever the status says.
var Reasons = []string{
	reasonRunning, errclass.AccessDenied, reasonAwaitingApproval, errclass.ContentMissing, errclass.KindNotFound,
	errclass.LockHeld, errclass.NotEmpty, errclass.NotInEffect, reasonNotReady, reasonPaced, errclass.ServerUnavailable,
	reasonSettling, errclass.StaleVersion, reasonSuspended, errclass.Terminating, errclass.TooLarge,
	errclass.TooManyRequests, errclass.WebhookUnavailable, reasonOther,
}

// progress is what the informer keeps of a Transaction beside the rest until it has ended.
type progress struct {
	reason      string
	since, half time.Time
}

// progressOf is nil for a Transaction that has ended.
func progressOf(s *decoded, g *summary) *progress {
	if g.phase.Terminal() {
		return nil
	}
	p := &progress{reason: waitsFor(s, g), since: s.CreationTimestamp.Time}
	begun, rollback := parsed(s.Status.StartTime), parsed(s.Status.RollbackStartTime)
	if begun.IsZero() {
		return p
	}
	p.since = begun
	still := time.Duration(s.Status.SuspendedSeconds+s.Status.Approval.WaitedSeconds) * time.Second
	if g.phase == api.PhaseRollingBack && !rollback.IsZero() {
		begun, still = rollback, 0
	}
	if s.Status.SuspendTime == "" && !g.standing {
		p.half = begun.Add(plan.Duration(s.Spec.Timeout, plan.DefaultTimeout)/2 + still)
	}
	return p
}

// waitsFor is one of Reasons.
func waitsFor(s *decoded, g *summary) string {
	if g.standing {
		return reasonAwaitingApproval
	}
	reason := string(s.Status.Reconciling)
	switch i := slices.Index(Reasons, reason); {
	case reason == "", reason == string(g.phase):
		return reasonRunning
	case i >= 0:
		return Reasons[i]
	default:
		return reasonOther
	}
}

// reconciling is the reason of that condition, decoded of all of them.
type reconciling string

// hasFinished is in the conditions of every Transaction that has ended. Thousands of them are decoded
// when janusd starts, and nothing is told of what they wait for.
var hasFinished = []byte(`"reason":"` + plan.ReasonFinished + `"`)

// UnmarshalJSON implements json.Unmarshaler.
func (r *reconciling) UnmarshalJSON(data []byte) error {
	if bytes.Contains(data, hasFinished) {
		*r = plan.ReasonFinished
		return nil
	}
	var conditions []struct{ Type, Reason string }
	if err := json.Unmarshal(data, &conditions); err != nil {
		return err
	}
	for _, c := range conditions {
		if c.Type == api.ConditionReconciling {
			*r = reconciling(c.Reason)
		}
	}
	return nil
}

// parsed is zero for a time that is missing, or none.
func parsed(text string) time.Time {
	var t metav1.Time
	if text == "" || t.UnmarshalQueryParameter(text) != nil {
		return time.Time{}
	}
	return t.Time
}

// Unended returns the Transactions that have not ended and are run here.
func (c *Controller) Unended() []Unended {
	var out []Unended
	for g := range c.summaries() {
		if p := g.progress; p != nil && c.ours(g.name) && c.mayRun(g) {
			out = append(out, Unended{Name: g.name, Reason: p.reason, Since: p.since, HalfTime: p.half})
		}
	}
	return out
}
