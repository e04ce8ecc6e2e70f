package plan

import (
	"fmt"
	"slices"
	"strings"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Schedule is the order in which changes are begun; they are rolled back in the reverse.
type Schedule struct {
	// Order has each change after all that it needs.
	Order []int
	// needs are the changes that must be done before one is begun; nil when the list is
	// the order.
	needs [][]int
	// width is how many may be under way.
	width int
}

// IsList reports whether each change comes after the one before it in the list.
func (s Schedule) IsList() bool { return s.needs == nil }

// DefaultParallelism is how many changes may be under way at once.
const DefaultParallelism = 10

// Order returns the changes of a Transaction in the order in which they are begun, and
// says what is wrong with it: a name that no change has, or changes that need each other.
func Order(t *api.Transaction) ([]int, error) {
	s, err := scheduled(t)
	return s.Order, err
}

// ScheduleOf is the schedule of a Transaction that was validated. If another client has edited
// it since, the list is the order.
func ScheduleOf(t *api.Transaction) Schedule {
	s, err := scheduled(t)
	if err != nil || len(s.Order) != len(t.Status.Items) {
		return inListOrder(len(t.Status.Items))
	}
	return s
}

func inListOrder(n int) Schedule {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return Schedule{Order: order, width: 1}
}

func scheduled(t *api.Transaction) (Schedule, error) {
	changes := t.Spec.Changes
	listed := inListOrder(len(changes))
	if !InBranches(&t.Spec) {
		listed.Order = turnList(t, listed.Order)
		return listed, listOnly(t)
	}
	needs, err := needsOf(t)
	if err != nil {
		return listed, err
	}
	turnOrder(t, needs)
	walk := walk{needs: needs, seen: make([]int, len(changes))}
	for i := range changes {
		if cycle := walk.visit(i); cycle != nil {
			return listed, cyclic(t, cycle)
		}
	}
	deferred(t, walk.order, needs)
	width := DefaultParallelism
	if t.Spec.Parallelism != nil && *t.Spec.Parallelism > 0 {
		width = int(*t.Spec.Parallelism)
	}
	return Schedule{Order: walk.order, needs: needs, width: width}, nil
}

// InBranches reports whether dependsOn gives the order, and not the list.
func InBranches(spec *api.TransactionSpec) bool {
	if spec.Order != "" {
		return spec.Order == api.OrderGraph
	}
	return slices.ContainsFunc(spec.Changes, func(c api.Change) bool { return len(c.DependsOn) > 0 })
}

// listOnly refuses dependsOn where the list is to be the order.
func listOnly(t *api.Transaction) error {
	for i, change := range t.Spec.Changes {
		if len(change.DependsOn) > 0 {
			return errclass.New(errclass.Terminal, errclass.Invalid, "order", "change "+ChangeName(i, change),
				"it has dependsOn, and spec.order is List").WithHint("leave one of them out, or set spec.order to Graph")
		}
	}
	return nil
}

// needsOf lists for each change what must be done before it: what it depends on, the
// change before of the same object, and the creation of its namespace or kind; or of what
// is deleted instead, what is deleted before it.
func needsOf(t *api.Transaction) ([][]int, error) {
	changes := t.Spec.Changes
	byName := map[string]int{}
	for i := range changes {
		byName[ChangeName(i, changes[i])] = i
	}
	needs := make([][]int, len(changes))
	last, made := map[api.Target]int{}, map[string]int{}
	for i := range changes {
		for _, name := range changes[i].DependsOn {
			j, ok := byName[name]
			if !ok {
				return nil, errclass.New(errclass.Terminal, errclass.Invalid, "order", "change "+ChangeName(i, changes[i]),
					"dependsOn names %q, and no change has that name", name).WithHint("a change without a name is called by its position in the list, from 0")
			}
			needs[i] = append(needs[i], j)
		}
		target := inNamespace(changes[i].Target, t.Namespace)
		if j, ok := last[target]; ok {
			needs[i] = append(needs[i], j)
		}
		last[target] = i
		for _, home := range homesOf(target) {
			if j, ok := made[home]; ok && j != i {
				needs[i] = append(needs[i], j)
			}
		}
		if home := homeMadeBy(changes[i]); home != "" {
			made[home] = i
		}
	}
	turnNeeds(t, needs)
	return needs, nil
}

// deferred has each change that is refused as long as an earlier one is not in effect wait
// for all up to that: another of them may be the reason as well. They come before it in the
// order, which stays as it is.
func deferred(t *api.Transaction, order []int, needs [][]int) {
	at := map[string]int{}
	for n, i := range order {
		if i >= len(t.Status.Items) {
			return
		}
		if last, ok := at[t.Status.Items[i].DeferredBy]; ok {
			needs[i] = append(needs[i], order[:last+1]...)
		}
		at[ChangeName(i, t.Spec.Changes[i])] = n
	}
}

// inNamespace identifies a target as spec.changes has it.
func inNamespace(t api.Target, namespace string) api.Target {
	if t.Namespace == "" {
		t.Namespace = namespace
	}
	return t.Identity()
}

// walk goes through the changes so that each comes after what it needs, and otherwise in
// the order of the list.
type walk struct {
	needs [][]int
	order []int
	seen  []int // 0: not yet, 1: on the way, 2: in the order
	path  []int
}

// visit returns a cycle if it meets one, from its first change to the same again.
func (w *walk) visit(i int) []int {
	switch w.seen[i] {
	case 2:
		return nil
	case 1:
		for at, j := range w.path {
			if j == i {
				return append(append([]int{}, w.path[at:]...), i)
			}
		}
	}
	w.seen[i], w.path = 1, append(w.path, i)
	for _, j := range w.needs[i] {
		if cycle := w.visit(j); cycle != nil {
			return cycle
		}
	}
	w.seen[i], w.path = 2, w.path[:len(w.path)-1]
	w.order = append(w.order, i)
	return nil
}

func cyclic(t *api.Transaction, cycle []int) error {
	names := make([]string, len(cycle))
	for n, i := range cycle {
		names[n] = ChangeName(i, t.Spec.Changes[i])
	}
	return errclass.New(errclass.Terminal, errclass.CyclicDependency, "order", "the changes",
		"each waits for the next: %s", strings.Join(names, " -> ")).
		WithHint("take one of them out of dependsOn; changes of one object also wait for each other in the order of the list, and objects for the Namespace or CustomResourceDefinition that they need")
}

// ChangeName is what status, events and logs call a change.
func ChangeName(i int, change api.Change) string {
	if change.Name != "" {
		return change.Name
	}
	return fmt.Sprint(i)
}

// Next returns the change to begin next; -1 if there is none, or none yet.
func (s Schedule) Next(items []api.Item) int {
	if len(Waiting(items)) >= s.width {
		return -1
	}
	for _, i := range s.Order {
		switch state := items[i].State; {
		case state != api.ItemPending && state != api.ItemPrepared:
			if s.needs == nil && !done(&items[i]) {
				return -1
			}
		case s.needs == nil || allDone(items, s.needs[i]):
			return i
		}
	}
	return -1
}

// unsettledBefore reports whether the n-th change in order comes after one that has failed and of which
// it is not known whether it is in effect.
func (s Schedule) unsettledBefore(items []api.Item, n int) bool {
	before := s.Order[:n]
	if s.needs != nil {
		before = below(s.needs, s.Order[n])
	}
	return settling(items, before) >= 0
}

// after reports whether a change is begun only when another is done.
func (s Schedule) after(i, other int) bool {
	if s.needs == nil {
		return slices.Index(s.Order, other) < slices.Index(s.Order, i)
	}
	before := walk{needs: s.needs, seen: make([]int, len(s.Order))}
	return before.visit(i) == nil && i != other && slices.Contains(before.order, other)
}

// done reports whether nothing is left to do or to wait for.
func done(item *api.Item) bool {
	return item.State == api.ItemSkipped || item.State == api.ItemCommitted && !Unready(item) || Failed(item)
}

// Unready reports whether a change is in effect and waited for.
func Unready(item *api.Item) bool {
	return item.State == api.ItemCommitted && item.WaitStartTime != nil && item.ReadyTime == nil && !item.Failed
}

func allDone(items []api.Item, which []int) bool {
	for _, i := range which {
		if !done(&items[i]) {
			return false
		}
	}
	return true
}

// Waiting lists the items that are waited for.
func Waiting(items []api.Item) []int {
	var out []int
	for i := range items {
		if Unready(&items[i]) {
			out = append(out, i)
		}
	}
	return out
}

// IsLast reports whether a change is the last whatever happens: nothing can fail after
// it that would have it rolled back.
func IsLast(t *api.Transaction, i int) bool {
	if i >= len(t.Spec.Changes) || Gated(ChangeOf(t, i)) || guarded(t) {
		return false
	}
	s := ScheduleOf(t)
	if s.needs == nil {
		return len(s.Order) > 0 && s.Order[len(s.Order)-1] == i
	}
	before := walk{needs: s.needs, seen: make([]int, len(s.Order))}
	return before.visit(i) == nil && len(before.order) == len(s.Order)
}

// IsTail reports whether none but Deletes come after a change.
func IsTail(t *api.Transaction, i int) bool {
	order := ScheduleOf(t).Order
	for n := len(order) - 1; n >= 0 && order[n] != i; n-- {
		if ChangeOf(t, order[n]).Type != api.Delete {
			return false
		}
	}
	return true
}

// Gated reports whether a change is not done when it is in effect.
func Gated(c api.Change) bool { return c.ReadyWhen != nil || c.GoneWhen != nil }
