package ui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Detail is all that the page shows of one Transaction.
type Detail struct {
	Summary
	ServiceAccount string `json:"serviceAccount"`
	Duration       string `json:"duration"`
	FailedItem     string `json:"failedItem"`
	Failures       int32  `json:"failures"`
	Recoveries     int32  `json:"recoveries"`
	Revision       int64  `json:"revision"`
	UndoOf         string `json:"undoOf"`
	Approval       string `json:"approval"`
	// Owner is what the Transaction was made for.
	Owner string `json:"owner"`
	// Chain is true if each item comes after the one before it in the list.
	Chain    bool     `json:"chain"`
	Timeline []Moment `json:"timeline"`
	Items    []Item   `json:"items"`
	Locks    []Lock   `json:"locks"`
	Events   []Event  `json:"events"`
	// Unread says what could not be read, and why; the rest is shown all the same.
	Unread []string `json:"unread"`
}

// Moment is something that happened to a Transaction.
type Moment struct {
	Time string `json:"time"`
	What string `json:"what"`
	Why  string `json:"why"`
}

// Event is an event about a Transaction.
type Event struct {
	Time    string `json:"time"`
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Count   int32  `json:"count"`
}

func (h *handler) detail(ctx context.Context, t *api.Transaction) Detail {
	d := Detail{
		Summary: summaryOf(t), ServiceAccount: t.Spec.ServiceAccountName, Duration: t.Status.Duration,
		FailedItem: t.Status.FailedItem, Failures: t.Status.Failures, Recoveries: t.Status.Recoveries,
		Revision: t.Status.Revision, Chain: isChain(t), Timeline: timeline(t), Items: itemsOf(t), Events: []Event{}, Unread: []string{},
		Approval: errclass.Printable(t.DescribeApproval()), Owner: t.DescribeOwners(),
	}
	if t.Spec.UndoOf != nil {
		d.UndoOf = undoes(t)
	}
	var unread []string
	d.Locks, unread = h.locks(ctx, t)
	d.Unread = append(d.Unread, unread...)
	events, err := h.reader.Events(ctx, t)
	if err != nil {
		d.Unread = append(d.Unread, "events: "+err.Error())
	}
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return when(a).Compare(when(b)) })
	for _, e := range events {
		count := e.Count
		if e.Series != nil {
			count = e.Series.Count
		}
		d.Events = append(d.Events, Event{
			Time: when(e).UTC().Format(time.RFC3339), Type: e.Type, Reason: e.Reason, Message: e.Message, Count: max(count, 1),
		})
	}
	return d
}

// undoes says what a Transaction undoes; with toRevision, once that is found, all of it.
func undoes(t *api.Transaction) string {
	of := t.Spec.UndoOf
	if of.ToRevision == nil {
		return cmp.Or(of.Name, fmt.Sprintf("revision %d", ptr.Deref(of.Revision, 0)))
	}
	text := fmt.Sprintf("all since revision %d", *of.ToRevision)
	if t.Status.Undoing == nil {
		return text
	}
	var names []string
	for _, one := range t.Status.Undoing.All() {
		names = append(names, fmt.Sprintf("%d %s", one.Revision, one.Name))
	}
	return text + ": " + strings.Join(names, ", ")
}

func isChain(t *api.Transaction) bool {
	if t.Spec.Order != "" {
		return t.Spec.Order == api.OrderList
	}
	return !slices.ContainsFunc(t.Spec.Changes, func(c api.Change) bool { return len(c.DependsOn) > 0 })
}

// when is the time of an event, whichever of its fields has it.
func when(e corev1.Event) time.Time {
	if !e.EventTime.IsZero() {
		return e.EventTime.Time
	}
	return e.LastTimestamp.Time
}

// timeline says what happened when, as far as the status tells: of a condition it has the last
// change alone.
func timeline(t *api.Transaction) []Moment {
	moments := []Moment{{Time: stamp(&t.CreationTimestamp), What: "created"}}
	add := func(time, what, why string) {
		if time != "" {
			moments = append(moments, Moment{Time: time, What: what, Why: why})
		}
	}
	add(stamp(t.Status.StartTime), "started", "")
	for _, c := range t.Status.Conditions {
		add(stamp(&c.LastTransitionTime), c.Type+" is "+string(c.Status), c.Reason)
	}
	for i, item := range t.Status.Items {
		name := cmp.Or(item.Name, strconv.Itoa(i))
		add(stamp(item.WaitStartTime), "item "+name+" is in effect, and waited for", "")
		add(stamp(item.ReadyTime), "item "+name+" is ready", "")
		if wait := item.RollbackWait; wait != nil {
			add(stamp(wait.StartTime), "item "+name+" is restored, and waited for", "")
			add(stamp(wait.ReadyTime), "item "+name+" is ready again", "")
		}
	}
	add(stamp(t.Status.GuardTime), "all guards hold", "")
	add(stamp(t.Status.RollbackStartTime), "rollback began", "")
	add(stamp(t.Status.CompletionTime), "ended", string(t.Status.Phase))
	slices.SortStableFunc(moments, func(a, b Moment) int { return cmp.Compare(a.Time, b.Time) })
	return moments
}
