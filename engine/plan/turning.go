package plan

import (
	"slices"

	api "janus.io/janus/api/v1alpha1"
)

// The changes of one object are made in the order of the list, also where some of them delete their target
// instead: an earlier one that is made as it is would create again, or find missing, what was deleted.

// turnOrder completes, in a graph, the order of what is deleted instead. What depends on an object is deleted
// before it, also where an Await comes in between that waits as ever. And a target is deleted after the earlier
// changes of the object that are made as they are. That is an order and no dependency: if one of those has
// failed, the target is deleted all the same. What comes after the deletion, as an Await may, is not waited for.
func turnOrder(t *api.Transaction, needs [][]int) {
	if len(t.Status.Items) != len(needs) || !anyDeletesInstead(t) {
		return
	}
	byName, earlier := map[string]int{}, map[api.Target][]int{}
	for i := range needs {
		byName[t.Status.Items[i].Name] = i
	}
	for i := range needs {
		for _, name := range t.Status.Items[i].DependsOn {
			if j, ok := byName[name]; ok && DeletesInstead(t, i) && turned(t, j) {
				needs[i] = append(needs[i], j)
			}
		}
	}
	for i := range needs {
		target := inNamespace(t.Spec.Changes[i].Target, t.Namespace)
		if !turned(t, i) {
			earlier[target] = append(earlier[target], i)
			continue
		}
		for _, j := range earlier[target] {
			if DeletesInstead(t, i) && !slices.Contains(below(needs, j), i) {
				needs[i] = append(needs[i], j)
			}
		}
	}
}

// ownBefore are the changes that are made, in a list, before the targets of those in rest are deleted with
// that of root: the earlier changes of the same objects that are made as they are, and what these depend on.
// An Await of an object stays where it is if an earlier change of the object deletes it.
func ownBefore(t *api.Transaction, root int, rest []int) []int {
	name := t.Status.Items[root].Name
	if !slices.ContainsFunc(rest, func(j int) bool { return slices.Contains(t.Status.Items[j].DeletedWith, name) }) {
		return nil
	}
	deleted, after := map[api.Target]bool{}, map[int]bool{}
	for _, i := range slices.Concat([]int{root}, rest) {
		target := t.Status.Items[i].Target.Identity()
		after[i], deleted[target] = deleted[target], deleted[target] || turned(t, i)
	}
	var out []int
	objects, needed := map[api.Target]bool{}, map[string]bool{}
	for _, i := range slices.Backward(rest) {
		item := &t.Status.Items[i]
		target := item.Target.Identity()
		switch home := homeMadeBy(t.Spec.Changes[i]); {
		case turned(t, i):
			objects[target] = objects[target] || slices.Contains(item.DeletedWith, name) && DeletesInstead(t, i)
			continue
		case after[i], !objects[target] && !needed["item "+item.Name] && (home == "" || !needed[home]):
			continue
		}
		out, objects[target] = append(out, i), true
		for _, on := range slices.Concat(item.DependsOn, []string{item.DeferredBy}) {
			needed["item "+on] = true
		}
		for _, home := range homesOf(target) {
			needed[home] = true
		}
	}
	slices.Reverse(out)
	return out
}

func anyDeletesInstead(t *api.Transaction) bool {
	for i := range t.Status.Items {
		if DeletesInstead(t, i) {
			return true
		}
	}
	return false
}
