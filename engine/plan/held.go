package plan

import (
	"fmt"
	"slices"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// What an item depends on is not rolled back as long as the item is in effect: a Deployment
// that a rollback has to leave needs the ConfigMap that its Pods mount. All of this follows from
// the spec and the status, so that every process decides the same.

// Held are the items that a rollback does not roll back for the sake of others: not at all, or
// not yet.
type Held struct {
	// stay are those that are in effect because of an item that could not be rolled back.
	stay map[int]blocker
	// aside are those that were refused, waiting those that come after them.
	aside, waiting map[int]bool
	// needed are those on which others depend that are in effect, as far as is on record.
	needed map[int]bool
	// freed are Blocked ones that nothing blocks any more.
	freed map[int]bool
}

// blocker is why an item stays in effect.
type blocker struct {
	item int
	// above is set if it is a later change of the same object.
	above bool
}

// HeldOf finds them for the given items of t, of which its status may have an older record.
// over says of an item that it is rolled back, and not on record yet.
func HeldOf(t *api.Transaction, items []api.Item, over func(int) bool) Held {
	order := ScheduleOf(t).Order
	w := unwinding{
		Held: Held{stay: map[int]blocker{}, aside: map[int]bool{}, waiting: map[int]bool{}, needed: map[int]bool{}, freed: map[int]bool{}},
		on:   dependencies(t, order), items: items, later: map[api.Target]bool{}, above: map[api.Target]int{},
	}
	if w.on == nil && !anyHolds(items) {
		return Held{}
	}
	for _, i := range slices.Backward(order) {
		w.leave(i)
		w.postpone(i, over(i))
	}
	return w.Held
}

func anyHolds(items []api.Item) bool {
	for i := range items {
		if items[i].State == api.ItemUnresolved || IsSetAside(&items[i]) {
			return true
		}
	}
	return false
}

// unwinding goes through the items in reverse order.
type unwinding struct {
	Held
	on    [][]int
	items []api.Item
	// later are the objects of which a later change is not to be rolled back yet, above those
	// of which one stays in effect that is rolled back before the earlier ones.
	later map[api.Target]bool
	above map[api.Target]int
}

func (w *unwinding) below(i int) []int {
	if w.on == nil {
		return nil
	}
	return w.on[i]
}

// leave notes what stays in effect because item i does.
func (w *unwinding) leave(i int) {
	item := &w.items[i]
	key := item.Target.Identity()
	// What has changed nothing, such as an Await of that object, has nothing that could stay.
	if j, ok := w.above[key]; ok && item.Changes() {
		w.stay[i] = blocker{j, true}
	}
	by, stays := w.stay[i]
	fails := item.State == api.ItemUnresolved && !isBlocked(item)
	switch {
	case fails, stays && by.above:
		by = blocker{item: i}
	case !stays:
		if isBlocked(item) {
			w.freed[i] = true
		}
		return
	}
	for _, j := range w.below(i) {
		if _, known := w.stay[j]; !known {
			w.stay[j] = blocker{item: by.item}
		}
	}
	// Over fields that another client has written, the earlier changes are rolled back.
	if fails && (mayHeal(item) || left(item)) || !fails && (inEffect(item) || isBlocked(item)) {
		w.above[key] = i
	}
}

// postpone notes what is not to be rolled back before item i.
func (w *unwinding) postpone(i int, over bool) {
	item := &w.items[i]
	key := item.Target.Identity()
	var but []string
	switch {
	case IsSetAside(item) && !over:
		w.aside[i], w.later[key], but = true, true, item.SetAsideFor
		for _, j := range below(w.on, i) {
			w.waiting[j] = w.waiting[j] || !slices.Contains(but, w.items[j].Name)
		}
	case w.later[key], w.waiting[i]:
		w.waiting[i], w.later[key] = true, true
		for _, j := range w.below(i) {
			w.waiting[j] = true
		}
	}
	if !inEffect(item) && !w.freed[i] && !w.needed[i] {
		return // Through what only waits, or is over, what is needed is needed all the same.
	}
	for _, j := range w.below(i) {
		w.needed[j] = w.needed[j] || !slices.Contains(but, w.items[j].Name)
	}
}

// inEffect reports whether the change of an item may be in effect and is to be rolled back.
func inEffect(item *api.Item) bool {
	return item.State == api.ItemCommitting || item.State == api.ItemCommitted || item.State == api.ItemRollingBack
}

func (h Held) stays(i int) bool {
	_, ok := h.stay[i]
	return ok
}

func (h Held) waits(i int) bool { return h.aside[i] || h.waiting[i] }

func (h Held) anyAside() bool { return len(h.aside) > 0 }

// Skips reports whether an item is not to be rolled back now, or not at all.
func (h Held) Skips(i int) bool { return h.stays(i) || h.waits(i) }

// Needed reports whether another item depends on this one that is not on record as rolled back.
// The intent to roll back this one is not recorded before that.
func (h Held) Needed(i int) bool { return h.needed[i] }

// Freed reports whether an item is Blocked and nothing blocks it any more.
func (h Held) Freed(i int) bool { return h.freed[i] }

// closed reports whether the change of an item is in effect and its compensation not begun.
func (h Held) closed(items []api.Item, i int) bool {
	return items[i].State == api.ItemCommitted || h.freed[i]
}

// Retried reports whether an item is set aside, and tried again before what waits for it.
func (h Held) Retried(i int) bool { return h.aside[i] && !h.waiting[i] && !h.stays(i) }

// Leave records that items stay in effect because others do.
func (h Held) Leave(items []api.Item, these []int) error {
	for _, i := range these {
		by, ok := h.stay[i]
		if !ok {
			return fmt.Errorf("item %s: no item blocks it", items[i].Name)
		}
		if err := leaveBlocked(items, i, by); err != nil {
			return err
		}
	}
	return nil
}

// Restate corrects what Blocked items say of what blocks them: that may have been rolled back
// meanwhile, and another item be in its place.
func (h Held) Restate(items []api.Item) {
	for i := range items {
		if by, ok := h.stay[i]; ok && isBlocked(&items[i]) && items[i].BlockedBy != items[by.item].Name {
			sayBlocked(items, i, by)
		}
	}
}

func leaveBlocked(items []api.Item, i int, by blocker) error {
	sayBlocked(items, i, by)
	return MoveItem(&items[i], api.ItemUnresolved)
}

func sayBlocked(items []api.Item, i int, by blocker) {
	item, other := &items[i], &items[by.item]
	why := fmt.Sprintf("item %s (%s), which depends on it, is not rolled back", other.Name, other.Target.String())
	if by.above {
		why = fmt.Sprintf("item %s, which changed it after this one, is not rolled back", other.Name)
	}
	item.Reason, item.BlockedBy, item.SetAside, item.SetAsideFor = errclass.Blocked, other.Name, false, nil
	item.Message = errclass.Cut(errclass.Printable(fmt.Sprintf("%s stays as the change made it: %s. When a recovery has rolled that item back, it rolls back this one too",
		item.Target.String(), why)), max(ReportShare(len(items)), 400))
}
