package plan

import (
	"strings"

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
	// reasonDependencyDeleted is that of a change that is not made because the target of one that
	// it depends on is deleted, and that has nothing to delete itself.
	reasonDependencyDeleted = "DependencyDeleted"
	// ReasonNotActivated is that of a change whose activation does not hold: it asks for a kind
	// that the cluster does not serve.
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

// skippedOf says what was skipped, and what was deleted because a when was false, if anything was.
func skippedOf(status *api.TransactionStatus) string {
	var skipped, deleted []string
	for i := range status.Items {
		switch item := &status.Items[i]; {
		case item.State == api.ItemSkipped:
			skipped = append(skipped, item.Name)
		case item.DeletesInstead():
			deleted = append(deleted, item.Name)
		}
	}
	text := ""
	if len(deleted) > 0 {
		text = "; deleted, because a when is false: items " + strings.Join(deleted, ", ")
	}
	if len(skipped) > 0 {
		text += "; skipped: items " + strings.Join(skipped, ", ")
	}
	return errclass.Printable(text)
}
