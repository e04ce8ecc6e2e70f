package harness

import api "janus.io/janus/api/v1alpha1"

// Once calls act when a Transaction as stored, or about to be, is so for the first
// time.
func Once(so func(*api.Transaction) bool, act func()) func(*api.Transaction) {
	done := false
	return func(t *api.Transaction) {
		if !done && so(t) {
			done = true
			act()
		}
	}
}

// InPhase reports whether a Transaction is in a phase.
func InPhase(p api.Phase) func(*api.Transaction) bool {
	return func(t *api.Transaction) bool { return t.Status.Phase == p }
}

// CommittedItems counts the items of a Transaction that are Committed.
func CommittedItems(t *api.Transaction) (n int) {
	for _, item := range t.Status.Items {
		if item.State == api.ItemCommitted {
			n++
		}
	}
	return n
}

// Committed reports whether so many items of a Transaction are Committed.
func Committed(n int) func(*api.Transaction) bool {
	return func(t *api.Transaction) bool { return CommittedItems(t) == n }
}
