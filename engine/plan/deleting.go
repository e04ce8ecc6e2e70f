package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	api "janus.io/janus/api/v1alpha1"
)

// A change with whenFalse Delete whose when is false deletes its target, and the changes that depend on
// it delete theirs before that. What was decided is on record as the type of each item; from then on it
// is a Delete like any other, and the order is that of the record.

// DeletesInstead reports whether it is on record that item i deletes its target instead of making its
// change.
func DeletesInstead(t *api.Transaction, i int) bool {
	return i < len(t.Status.Items) && deletesInstead(t, t.Status.Items, i)
}

func deletesInstead(t *api.Transaction, items []api.Item, i int) bool {
	return i < len(t.Spec.Changes) && items[i].Type == api.Delete && t.Spec.Changes[i].Type != api.Delete
}

// ChangeOf returns what is done with the target of item i: the change of the spec, or the Delete that
// is in its place. Its when was judged, or does not matter any more. A loss is accepted if it is by the
// change itself, or by all those because of which its target is deleted.
func ChangeOf(t *api.Transaction, i int) api.Change {
	c := t.Spec.Changes[i]
	if !DeletesInstead(t, i) {
		return c
	}
	return api.Change{
		Name: c.Name, Target: c.Target, Type: api.Delete, Activation: c.Activation, Rollback: c.Rollback,
		AcceptLoss: c.AcceptLoss || lossAccepted(t, i),
	}
}

func lossAccepted(t *api.Transaction, i int) bool {
	accepted := false
	for _, name := range t.Status.Items[i].DeletedWith {
		j := IndexOf(t.Status.Items, name)
		if j < 0 || j >= len(t.Spec.Changes) || !t.Spec.Changes[j].AcceptLoss {
			return false
		}
		accepted = true
	}
	return accepted
}

// MayBeDeleted reports whether the target of item i may be deleted in place of its change.
func MayBeDeleted(t *api.Transaction, i int) bool {
	return makes(t.Spec.Changes[i].Type) && (deletesIfFalse(&t.Spec.Changes[i]) || len(t.Status.Items[i].DeletedWith) > 0)
}

// AsDeleted returns the Transaction as it would be if item i deleted its target.
func AsDeleted(t *api.Transaction, i int) *api.Transaction {
	out := *t
	out.Status.Items = slices.Clone(t.Status.Items)
	out.Status.Items[i].Type = api.Delete
	return &out
}

func deletesIfFalse(c *api.Change) bool { return c.WhenFalse == api.WhenFalseDelete }

// makes reports whether a change of a type makes or changes its target.
func makes(kind api.ChangeType) bool {
	return kind == api.Create || kind == api.Update || kind == api.Patch
}

// RelateDeletions records of each item with which others its target is deleted: those with whenFalse
// Delete that it depends on. refers are the earlier changes whose targets the content of each refers to;
// in a list it depends on those, and in a graph, where it may be made before them, it does not.
func RelateDeletions(t *api.Transaction, refers [][]int) error {
	if !slices.ContainsFunc(t.Spec.Changes, func(c api.Change) bool { return deletesIfFalse(&c) }) {
		return nil
	}
	order, err := Order(t)
	if err != nil {
		return err
	}
	needs, err := needsOf(t)
	if err != nil {
		return err
	}
	with, keys := make([]map[int]bool, len(t.Status.Items)), make([]api.Target, len(t.Status.Items))
	for n, i := range order {
		with[i], keys[i] = map[int]bool{}, inNamespace(t.Spec.Changes[i].Target, t.Namespace)
		for _, j := range deletedAfter(t, i, order[:n], needs[i], refers[i], keys) {
			if deletesIfFalse(&t.Spec.Changes[j]) && t.Status.Items[j].State != api.ItemSkipped {
				with[i][j] = true
			}
			maps.Copy(with[i], with[j])
		}
		t.Status.Items[i].DeletedWith = nil
		for _, j := range order[:n] {
			if with[i][j] {
				t.Status.Items[i].DeletedWith = append(t.Status.Items[i].DeletedWith, t.Status.Items[j].Name)
			}
		}
	}
	return nil
}

// deletedAfter are the earlier changes that change i depends on by itself, as far as deletions go. To
// wait for an object that an earlier change deletes is no dependency.
func deletedAfter(t *api.Transaction, i int, earlier, needs, refers []int, keys []api.Target) []int {
	var out []int
	for _, j := range needs {
		if keys[j] != keys[i] || slices.Contains(t.Spec.Changes[i].DependsOn, ChangeName(j, t.Spec.Changes[j])) {
			out = append(out, j)
		}
	}
	if !InBranches(&t.Spec) {
		out = append(out, refers...)
	}
	for _, j := range earlier {
		if keys[j] == keys[i] && t.Spec.Changes[i].Type != api.Await && t.Spec.Changes[j].Type != api.Await {
			out = append(out, j)
		}
	}
	return out
}

// DeleteInstead records that the when of item i is false, and that it deletes its target: after those
// that depend on it have deleted theirs. Those of them that make nothing, Deletes and Awaits, are not
// made. What was saved of the others is saved again, for what they do now.
func DeleteInstead(t *api.Transaction, items []api.Item, i int) error {
	root := &items[i]
	if err := deleteFrom(root); err != nil {
		return err
	}
	root.DependsOn = nil
	var with []int
	for j := range items {
		if !slices.Contains(items[j].DeletedWith, root.Name) {
			continue
		}
		with = append(with, j)
		if err := deleteBefore(t, items, j, root); err != nil {
			return err
		}
	}
	turnDependencies(t, items, i, with)
	return SkipDependents(t, items)
}

// deleteBefore makes a Delete of item j, which depends on one that deletes its target. What else it
// depends on does not matter any more: it was skipped because of that, or may be, and is deleted all the
// same. One that the pre-flight has skipped is not locked, and stays so.
func deleteBefore(t *api.Transaction, items []api.Item, j int, root *api.Item) error {
	item := &items[j]
	waits := item.State == api.ItemPending || item.State == api.ItemPrepared
	hindered := item.State == api.ItemSkipped && !item.Failed && (item.Reason == reasonDependencySkipped || item.Reason == reasonDependencyFailed)
	switch {
	case waits && !makes(t.Spec.Changes[j].Type):
		return Skip(item, reasonDependencyDeleted, fmt.Sprintf("%s is left as it is: it depends on %s, whose target is deleted because its when is false", item.Target.String(), root.Name))
	case waits, hindered && item.LockLease != "" && makes(t.Spec.Changes[j].Type):
	default:
		return nil
	}
	return deleteFrom(item)
}

// turnDependencies records what depends on what now: to delete an object depends on that what depends
// on the object is deleted.
func turnDependencies(t *api.Transaction, items []api.Item, root int, with []int) {
	before := map[string][]string{}
	for _, j := range with {
		for _, name := range items[j].DependsOn {
			before[name] = append(before[name], items[j].Name)
		}
	}
	for _, j := range with {
		if deletesInstead(t, items, j) {
			items[j].DependsOn = before[items[j].Name]
		}
		items[root].DependsOn = append(items[root].DependsOn, items[j].Name)
	}
}

// wasFalse reports whether the when of an item was asked, and false.
func wasFalse(item *api.Item) bool {
	return slices.ContainsFunc(item.Results, func(r api.ConditionResult) bool { return r.Condition == api.ConditionWhen && !r.Holds })
}

// SkipAbsent records that an item has nothing to delete.
func SkipAbsent(t *api.Transaction, item *api.Item, i int) error {
	reason, why := reasonDependencyDeleted, "it is not there, and would be deleted with "+strings.Join(item.DeletedWith, ", ")
	if deletesIfFalse(&t.Spec.Changes[i]) && wasFalse(item) {
		reason, why = ReasonWhenFalse, "it is not there, and would be deleted"
	}
	return Skip(item, reason, item.Target.String()+" is left as it is: "+why)
}

// turned reports whether an item deletes its target because of a when that is false, or is not made for
// the same reason.
func turned(t *api.Transaction, i int) bool {
	item := &t.Status.Items[i]
	return item.State == api.ItemSkipped && item.Reason == reasonDependencyDeleted || DeletesInstead(t, i)
}

// turnNeeds turns the order around where targets are deleted: what depends on an object is deleted
// before it. Whatever else it depends on does not matter any more.
func turnNeeds(t *api.Transaction, needs [][]int) {
	if len(t.Status.Items) != len(needs) {
		return // There is no record yet.
	}
	around := make([][]int, len(needs))
	for i, on := range needs {
		for _, j := range on {
			switch {
			case turned(t, i) && turned(t, j):
				around[j] = append(around[j], i)
			case !turned(t, i):
				around[i] = append(around[i], j)
			}
		}
	}
	copy(needs, around)
}

// turnList is the order of a list: where a target is deleted, what depends on it comes before it, the
// last first, and before that the earlier changes of those objects that are made as they are.
func turnList(t *api.Transaction, order []int) []int {
	if len(t.Status.Items) != len(order) || !anyDeletesInstead(t) {
		return order
	}
	var out []int
	placed := make([]bool, len(order))
	place := func(i int) {
		if !placed[i] {
			placed[i], out = true, append(out, i)
		}
	}
	for n, i := range order {
		if DeletesInstead(t, i) && !placed[i] {
			for _, j := range ownBefore(t, i, order[n+1:]) {
				place(j)
			}
			for _, j := range slices.Backward(order[n+1:]) {
				if turned(t, j) && slices.Contains(t.Status.Items[j].DeletedWith, t.Status.Items[i].Name) {
					place(j)
				}
			}
		}
		place(i)
	}
	return out
}
