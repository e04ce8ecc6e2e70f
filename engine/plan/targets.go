package plan

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// SameTarget reports whether two targets are one object, named by whatever versions.
func SameTarget(a, b api.Target) bool { return Identity(a) == Identity(b) }

// Identity is a target without the version of its kind: every version of a kind
// shows the same object.
func Identity(t api.Target) api.Target {
	gv, err := schema.ParseGroupVersion(t.APIVersion)
	if err == nil {
		t.APIVersion = gv.Group
	}
	return t
}

// Describe writes a target as a person would: "Deployment shop/web".
func Describe(t api.Target) string {
	if t.Namespace == "" {
		return t.Kind + " " + t.Name
	}
	return t.Kind + " " + t.Namespace + "/" + t.Name
}

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
		if (mayHeal(&items[j]) || left(&items[j])) && Identity(items[j].Target) == Identity(items[i].Target) {
			return j
		}
	}
	return -1
}

// Blocked is why item i is not rolled back: a later change of its target is not.
func Blocked(status *api.TransactionStatus, i, later int) error {
	return errclass.New(errclass.Terminal, errclass.Blocked, "roll back", Describe(status.Items[i].Target),
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
