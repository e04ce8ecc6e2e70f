package plan

import (
	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// IndexOf returns the index of the item with a name; -1 if there is none.
func IndexOf(items []api.Item, name string) int {
	for i := range items {
		if name != "" && items[i].Name == name {
			return i
		}
	}
	return -1
}

// InTheWay returns a later change of the same object that is to be rolled back before
// item i, and could not be yet; -1 if there is none.
func InTheWay(items []api.Item, i int) int {
	for j := i + 1; j < len(items); j++ {
		if (mayHeal(&items[j]) || left(&items[j])) && items[j].Target.Identity() == items[i].Target.Identity() {
			return j
		}
	}
	return -1
}

// Blocked is why item i is not rolled back: a later change of its target is not.
func Blocked(status *api.TransactionStatus, i, later int) error {
	return errclass.New(errclass.Terminal, errclass.Blocked, "roll back", status.Items[i].Target.String(),
		"item %s, which changed it after this one, is not rolled back", status.Items[later].Name)
}

// Creates reports whether item i is a Create, or may be: a spec that another client has cut
// short since does not tell.
func Creates(t *api.Transaction, i int) bool {
	return i >= len(t.Spec.Changes) || t.Spec.Changes[i].Type == api.Create
}

// Deletes reports whether item i is a Delete, or may be.
func Deletes(t *api.Transaction, i int) bool {
	return i >= len(t.Spec.Changes) || t.Spec.Changes[i].Type == api.Delete
}
