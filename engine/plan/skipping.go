package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Reasons of items that were skipped.
const (
	ReasonWhenFalse         = "WhenFalse"
	reasonDependencySkipped = "DependencySkipped"
	// reasonDependencyFailed is that of a change that is not made because one that it depends on
	// has failed.
	reasonDependencyFailed = "DependencyFailed"
	// ReasonNotActivated is that of a change whose activation names a kind that the
	// cluster does not serve.
	ReasonNotActivated = "NotActivated"
)

// NotReady is the reason of the wait for a change to be done.
const NotReady = "NotReady"

// Skip records that a change is not made.
func Skip(item *api.Item, reason, message string) error {
	item.Reason, item.Message = reason, errclass.Printable(message)
	return MoveItem(item, api.ItemSkipped)
}

// BeginAwait records that the turn of an Await has come. Nothing is sent for it, so it goes
// through its states at once.
func BeginAwait(item *api.Item, now metav1.Time) error {
	for _, state := range []api.ItemState{api.ItemPrepared, api.ItemCommitting, api.ItemCommitted} {
		if err := MoveItem(item, state); err != nil {
			return err
		}
	}
	item.WaitStartTime = &now
	return nil
}

// EndAwaits records that Awaits do not matter any more, because a rollback begins.
func EndAwaits(items []api.Item) error {
	for i := range items {
		item := &items[i]
		if item.Type != api.Await || item.State != api.ItemCommitted {
			continue
		}
		for _, state := range []api.ItemState{api.ItemRollingBack, api.ItemRolledBack} {
			if err := MoveItem(item, state); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReadyTimeout is how long a change may take to be done once it is in effect; nil for no limit.
func ReadyTimeout(c api.Change) *api.Duration {
	switch {
	case c.ReadyWhen != nil:
		return c.ReadyWhen.Timeout
	case c.GoneWhen != nil:
		return c.GoneWhen.Timeout
	}
	return nil
}

// HoldFor is how long what a change waits for has to hold before a change is done.
func HoldFor(c api.Change) time.Duration {
	switch {
	case c.ReadyWhen != nil:
		return Duration(c.ReadyWhen.HoldFor, 0)
	case c.GoneWhen != nil:
		return Duration(c.GoneWhen.HoldFor, 0)
	}
	return 0
}

// HoldLeft is how much longer what item i waits for has to hold, now that it does. Times are
// kept by the second.
func HoldLeft(t *api.Transaction, i int, now time.Time) time.Duration {
	if i >= len(t.Spec.Changes) || t.Status.Items[i].HoldStartTime == nil {
		return 0
	}
	return t.Status.Items[i].HoldStartTime.Add(HoldFor(t.Spec.Changes[i]) + time.Second).Sub(now)
}

// MustHold reports whether a change is done only after what it waits for has held for a while.
func MustHold(c api.Change) bool { return HoldFor(c) > 0 }
