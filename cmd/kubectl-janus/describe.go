package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

func newDescribe(s *session) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Aliases: []string{"status"},
		Use:     "describe NAME", Short: "Show all that is known of a Transaction: items, locks, conditions, events", Args: cobra.ExactArgs(1),
		ValidArgsFunction: s.names,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := s.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			events, err := s.events(cmd.Context(), t)
			switch {
			case err != nil && !apierrors.IsForbidden(err):
				return err
			case !out.text():
				return s.printDescription(out, t, events, err)
			}
			describe(s.Out, t)
			return s.printEvents(events, err)
		},
	}
	out.addTo(cmd)
	return cmd
}

// printDescription prints all that is known of a Transaction as data. unread says why its events are
// not.
func (s *session) printDescription(out output, t *api.Transaction, events []corev1.Event, unread error) error {
	u, err := whole(t)
	if err != nil {
		return err
	}
	all := map[string]any{"transaction": u.Object, "events": append([]corev1.Event{}, events...)}
	if unread != nil {
		all["eventsUnread"] = unread.Error()
	}
	return s.printData(out, all)
}

// describe prints what a Transaction says of itself.
func describe(out io.Writer, t *api.Transaction) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	field := func(name string, value any) {
		if text := fmt.Sprint(value); text != "" && text != "0" {
			write(w, "%s:\t%s\n", name, text)
		}
	}
	field("Name", t.Name)
	field("Namespace", t.Namespace)
	field("Owned by", t.DescribeOwners())
	field("ServiceAccount", t.Spec.ServiceAccountName)
	field("Phase", phaseOf(t))
	field("Progress", t.Status.Progress)
	field("Approval", errclass.Printable(t.DescribeApproval()))
	field("Started", stamp(t.Status.StartTime))
	field("Ended", stamp(t.Status.CompletionTime))
	field("Duration", t.Status.Duration)
	field("Failed item", t.Status.FailedItem)
	field("Failed attempts", t.Status.Failures)
	field("Timed out", errclass.Printable(t.DescribeTimeouts()))
	field("Recoveries", t.Status.Recoveries)
	field("Revision", t.Status.Revision)
	if ref := t.Status.RollbackRef; ref != nil {
		field("Before-images", strings.Join(ref.Objects, ", "))
	}
	_ = w.Flush()

	_, _ = fmt.Fprintln(out, "Items:")
	for i := range t.Status.Items {
		describeItem(out, t, i)
	}
	printMissing(out, t, "")
	if len(t.Status.Items) == 0 {
		list(out, t.Spec.Changes)
	}
	if len(t.Status.Conditions) > 0 {
		_, _ = fmt.Fprintln(out, "Conditions:")
	}
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	said := map[string]string{} // By what a message says, the condition that said it first.
	for _, c := range t.Status.Conditions {
		message := c.Message
		if by, known := said[message]; known && len(message) > 80 {
			message = "as " + by + " says"
		} else {
			said[message] = c.Type
		}
		if onlyRights(t) && c.Reason == errclass.AccessDenied {
			message = "rights are missing: they are listed above"
		}
		write(w, "  %s\t%s\t%s\t%s\n", c.Type, c.Status, c.Reason, message)
	}
	_ = w.Flush()
}

func stamp(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func describeItem(out io.Writer, t *api.Transaction, i int) {
	item := t.Status.Items[i]
	write(out, "  %s\n", itemSentence(t, i))
	detail := func(format string, args ...any) { write(out, "      "+format+"\n", args...) }
	if i < len(t.Spec.Changes) && len(t.Spec.Changes[i].DependsOn) > 0 {
		detail("after %s", strings.Join(t.Spec.Changes[i].DependsOn, ", "))
	}
	if names := refersTo(t, i); len(names) > 0 {
		detail("depends on %s", strings.Join(names, ", "))
	}
	switch {
	case item.DeletesInstead():
		detail("deletes its target, because a when is false")
	case len(item.DeletedWith) > 0 && item.State != api.ItemSkipped:
		detail(deletedIf(&item))
	}
	if item.LockLease != "" && !ended(t) {
		detail("locked by Lease %s", item.LockLease)
	}
	if plan.Unready(&item) {
		detail("waiting since %s", stamp(item.WaitStartTime))
	}
	if item.Unchanged {
		detail(unwritten)
	}
	if item.Guard {
		detail("guard: judged again before the first change and before the commit")
	}
	if wait := item.RollbackWait; wait != nil && item.State != api.ItemRolledBack {
		detail("restored, and not ready since %s", stamp(wait.StartTime))
	}
	for _, r := range item.Results {
		detail("%s was %t at %s%s", r.Condition, r.Holds, stamp(&r.Time), after(": ", r.Message))
	}
	for _, taken := range item.Taken {
		detail("%s: %s", takenFrom(taken.Manager, releasedTo(t, i)), some(taken.Fields, taken.More))
	}
	for _, again := range item.Reclaimed {
		detail("taken again by %s: %s", again.Manager, some(again.Fields, again.More))
	}
	for _, c := range item.Conflicts {
		detail("%s is %s now%s; it was to be %s", c.Field, orNothing(c.Now), after(", written by ", strings.Join(c.Managers, ", ")), orNothing(c.Before))
	}
	for _, warning := range item.Warnings {
		detail("warning: %s", warning)
	}
}

// after puts a text after a separator, if there is one.
func after(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

func some(fields []string, more int64) string {
	text := strings.Join(fields, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func orNothing(value string) string {
	if value == "" {
		return "(none)"
	}
	return value
}

// events are those of a Transaction, the oldest first.
func (s *session) events(ctx context.Context, t *api.Transaction) ([]corev1.Event, error) {
	client, err := s.kube()
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().Events(t.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(t.UID)).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list the events of Transaction %s/%s: %w", t.Namespace, t.Name, err)
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int { return when(a).Compare(when(b)) })
	return list.Items, nil
}

// printEvents prints events, or why they cannot be read.
func (s *session) printEvents(events []corev1.Event, unread error) error {
	if len(events) > 0 || unread != nil {
		s.print("Events:")
	}
	if unread != nil {
		s.print("  cannot be read: %v", errors.Unwrap(unread))
		return nil
	}
	w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	for _, e := range events {
		write(w, "  %s\t%s\t%s\t%s\n", duration.HumanDuration(time.Since(when(e))), e.Type, e.Reason, e.Message)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the events: %w", err)
	}
	return nil
}

// when is the time of an event, whichever of its fields has it.
func when(e corev1.Event) time.Time {
	if !e.EventTime.IsZero() {
		return e.EventTime.Time
	}
	return e.LastTimestamp.Time
}
