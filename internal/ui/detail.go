package ui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	// Progress is what the status says: the number of changes in effect out of all.
	Progress   string `json:"progress"`
	FailedItem string `json:"failedItem"`
	Failures   int32  `json:"failures"`
	// TimedOut says which object requests time out on; empty if none do.
	TimedOut   string `json:"timedOut"`
	Recoveries int32  `json:"recoveries"`
	Revision   int64  `json:"revision"`
	UndoOf     string `json:"undoOf"`
	Approval   string `json:"approval"`
	// Owner is what the Transaction was made for.
	Owner string `json:"owner"`
	// Chain is true if each item comes after the one before it in the list.
	Chain      bool        `json:"chain"`
	Waits      []Wait      `json:"waits"`
	Commands   []Command   `json:"commands"`
	Phases     []Span      `json:"phases"`
	Timeline   []Moment    `json:"timeline"`
	Conditions []Condition `json:"conditions"`
	Items      []Item      `json:"items"`
	Locks      []Lock      `json:"locks"`
	Events     []Event     `json:"events"`
	// Remembered are the revisions of the namespace, and Differences tells whether what the
	// items have changed can be asked for.
	Remembered  []Revision `json:"remembered"`
	Differences bool       `json:"differences"`
	// Unread says what could not be read, and why; the rest is shown all the same.
	Unread []string `json:"unread"`
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
		Summary: summaryOf(t), Progress: t.Status.Progress,
		FailedItem: t.Status.FailedItem, Failures: t.Status.Failures, Recoveries: t.Status.Recoveries,
		Revision: t.Status.Revision, Chain: isChain(t), Waits: waitsOf(t), Commands: commandsOf(t), Phases: phasesOf(t),
		Timeline: timeline(t), Conditions: conditionsOf(t), Items: itemsOf(t), Events: []Event{}, Unread: []string{},
		Differences: h.options.Past != nil && imaged(t),
		Approval:    errclass.Printable(t.DescribeApproval()), Owner: t.DescribeOwners(),
		TimedOut: errclass.Printable(t.DescribeTimeouts()),
	}
	if t.Spec.UndoOf != nil {
		d.UndoOf = undoes(t)
	}
	var unread []string
	d.Locks, unread = h.locks(ctx, t)
	d.Unread = append(d.Unread, unread...)
	d.Remembered, unread = h.revisions(ctx, t)
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
