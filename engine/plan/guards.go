package plan

import (
	api "janus.io/janus/api/v1alpha1"
)

// A guard is an Await that is judged again after it was found ready: right before the first
// change is begun, and right before the Transaction is committed.

// Guards lists the guards that were found ready.
func Guards(items []api.Item) []int {
	var out []int
	for i := range items {
		if items[i].Guard && items[i].State == api.ItemCommitted && !Unready(&items[i]) {
			out = append(out, i)
		}
	}
	return out
}

// GuardsFirst reports whether guards are to be judged before the first change is begun: none was
// yet.
func GuardsFirst(items []api.Item) bool {
	for i := range items {
		if items[i].Type == api.Await {
			continue
		}
		switch items[i].State {
		case api.ItemPending, api.ItemPrepared, api.ItemSkipped:
		default:
			return false
		}
	}
	return len(Guards(items)) > 0
}

// GuardsLast reports whether guards are to be judged before the commit: that they were is not on
// record.
func GuardsLast(status *api.TransactionStatus) bool {
	return status.GuardTime == nil && len(Guards(status.Items)) > 0
}

// guarded reports whether a Transaction has a guard: it may be rolled back after its last change.
func guarded(t *api.Transaction) bool {
	for i := range t.Spec.Changes {
		if t.Spec.Changes[i].Guard {
			return true
		}
	}
	return false
}
