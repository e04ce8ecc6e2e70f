package plan

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Reasons of items that were skipped.
const (
	ReasonWhenFalse         = "WhenFalse"
	reasonDependencySkipped = "DependencySkipped"
	// ReasonNotActivated is that of a change whose activation names a kind that the
	// cluster does not serve.
	ReasonNotActivated = "NotActivated"
)

// NotReady is the reason of the wait for a change to be done.
const NotReady = "NotReady"

// SkipDependents skips what depends on changes that are skipped.
func SkipDependents(t *api.Transaction, items []api.Item) error {
	order, err := Order(t)
	if err != nil {
		return err
	}
	skipped := map[string]string{}
	for _, i := range order {
		name, on := ChangeName(i, t.Spec.Changes[i]), ""
		for _, dependency := range t.Spec.Changes[i].DependsOn {
			if _, ok := skipped[dependency]; ok {
				on = dependency
				break
			}
		}
		item := &items[i]
		if on != "" && (item.State == api.ItemPending || item.State == api.ItemPrepared) {
			if err := Skip(item, reasonDependencySkipped, fmt.Sprintf("%s is left as it is: it depends on %s, which is skipped", item.Target.String(), on)); err != nil {
				return err
			}
		}
		if item.State == api.ItemSkipped {
			skipped[name] = item.Reason
		}
	}
	return nil
}

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
