package plan

import api "janus.io/janus/api/v1alpha1"

// IndexOf returns the index of the item with a name; -1 if there is none.
func IndexOf(items []api.Item, name string) int {
	for i := range items {
		if name != "" && items[i].Name == name {
			return i
		}
	}
	return -1
}

// Creates reports whether item i is a Create, or may be: a spec that another client has cut
// short since does not tell.
func Creates(t *api.Transaction, i int) bool {
	return i >= len(t.Spec.Changes) || ChangeOf(t, i).Type == api.Create
}

// Releases reports whether item i gives fields from one manager to another, which it does not if it
// deletes its target instead. Another client may have made the list of changes shorter.
func Releases(t *api.Transaction, i int) bool {
	return i < len(t.Spec.Changes) && ChangeOf(t, i).Release != nil
}

// Deletes reports whether item i is a Delete, or may be.
func Deletes(t *api.Transaction, i int) bool {
	return i >= len(t.Spec.Changes) || ChangeOf(t, i).Type == api.Delete
}
