package ui

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Wait is something that is waited for.
type Wait struct {
	// Item is the name of the item; empty if it is the Transaction that waits.
	Item  string `json:"item"`
	Since string `json:"since"`
	// Limit is how long it may take, in seconds; 0 if it has no limit of its own.
	Limit int64 `json:"limit"`
	// For is what is missing, such as "1/3 Pods ready"; empty while it is not known.
	For string `json:"for"`
}

// waitOf is the wait for the target of an item, after its change or its compensation; nil if the
// item is not waited for.
func waitOf(t *api.Transaction, i int) *Wait {
	item := &t.Status.Items[i]
	since, when := awaited(t, i)
	if since == nil {
		return nil
	}
	return &Wait{Item: nameOf(t, i), Since: stamp(since), Limit: seconds(when), For: lacking(t, item)}
}

// awaited is since when the target of an item is waited for, and how long that may take.
func awaited(t *api.Transaction, i int) (since *metav1.Time, limit *api.Duration) {
	item := &t.Status.Items[i]
	back := t.Status.Phase == api.PhaseRollingBack
	var c api.Change
	if i < len(t.Spec.Changes) {
		c = t.Spec.Changes[i]
	}
	switch {
	case t.Status.Phase.Terminal():
		return nil, nil
	case back && item.State == api.ItemRollingBack && item.RollbackWait != nil && item.RollbackWait.ReadyTime == nil:
		if c.Rollback != nil {
			limit = c.Rollback.ReadyWhen.Timeout
		}
		return item.RollbackWait.StartTime, limit
	case back || item.State != api.ItemCommitted || item.Failed || item.ReadyTime != nil:
		return nil, nil
	case c.ReadyWhen != nil:
		limit = c.ReadyWhen.Timeout
	case c.GoneWhen != nil:
		limit = c.GoneWhen.Timeout
	case item.ReadyWhen != nil:
		limit = item.ReadyWhen.Timeout
	}
	return item.WaitStartTime, limit
}

func seconds(limit *api.Duration) int64 {
	if limit == nil {
		return 0
	}
	d, err := time.ParseDuration(string(*limit))
	if err != nil {
		return 0
	}
	return int64(d.Seconds())
}

// lacking is what the Transaction says that a target lacks. It says it of all that is waited
// for, in one message.
func lacking(t *api.Transaction, item *api.Item) string {
	reconciling := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReconciling)
	if reconciling == nil {
		return ""
	}
	_, text, found := strings.Cut(reconciling.Message, item.Target.String()+": ")
	if !found {
		return ""
	}
	for i := range t.Status.Items {
		text, _, _ = strings.Cut(text, "; "+t.Status.Items[i].Target.String()+": ")
	}
	return text
}

// waitsOf is all that a Transaction waits for: first what it waits for as a whole, such as a lock,
// if that is no item.
func waitsOf(t *api.Transaction) []Wait {
	out := []Wait{}
	for i := range t.Status.Items {
		if w := waitOf(t, i); w != nil {
			out = append(out, *w)
		}
	}
	reconciling := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReconciling)
	if len(out) > 0 || !waits(t) || reconciling == nil {
		return out
	}
	return append(out, Wait{Since: stamp(waitsSince(t)), For: reconciling.Message})
}

// waits reports whether a Transaction waits for anything, and nothing is done meanwhile.
func waits(t *api.Transaction) bool {
	if t.Status.Phase.Terminal() {
		return false
	}
	if slices.ContainsFunc(indices(t.Status.Items), func(i int) bool { since, _ := awaited(t, i); return since != nil }) {
		return true
	}
	reconciling := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReconciling)
	return reconciling != nil && reconciling.Reason != string(t.Status.Phase)
}

// waitsSince is the time after which a Transaction has begun to wait, if it waits for no item, as
// far as the status tells.
func waitsSince(t *api.Transaction) *metav1.Time {
	if t.Status.SuspendTime != nil {
		return t.Status.SuspendTime
	}
	if a := t.Status.Approval; a != nil && a.ApprovalTime == nil && a.RequestTime != nil {
		return a.RequestTime
	}
	validated := meta.FindStatusCondition(t.Status.Conditions, api.ConditionValidated)
	if waitsForLocks(t) && validated != nil && validated.Status == metav1.ConditionTrue {
		return &validated.LastTransitionTime
	}
	return nil
}

// waitsForLocks reports whether a Transaction waits for the locks of its targets.
func waitsForLocks(t *api.Transaction) bool {
	ready := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReady)
	return ready != nil && ready.Reason == errclass.LockHeld && t.Status.CompletionTime == nil
}

func indices(items []api.Item) []int {
	out := make([]int, len(items))
	for i := range out {
		out[i] = i
	}
	return out
}
