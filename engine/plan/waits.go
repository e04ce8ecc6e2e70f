package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// An item is waited for after its change, if that has readyWhen or goneWhen, and after its
// compensation, if the change has rollback.readyWhen. Both are the same wait, on record in
// different fields.

// RestoredWhen reports whether the compensation of item i is waited for.
func RestoredWhen(t *api.Transaction, i int) bool {
	return i < len(t.Spec.Changes) && t.Spec.Changes[i].Rollback != nil
}

// Restoring reports whether the compensation of an item is made and waited for.
func Restoring(item *api.Item) bool {
	return item.State == api.ItemRollingBack && item.RollbackWait != nil
}

// KeepsLocks reports whether there are locks to renew while the Transaction waits. While they are
// taken, who waits for one may have others.
func KeepsLocks(t *api.Transaction) bool {
	switch t.Status.Phase {
	case "", api.PhasePending:
		return false
	case api.PhasePreparing:
		return true
	default:
		return slices.ContainsFunc(t.Status.Items, func(i api.Item) bool { return i.LockLease != "" })
	}
}

// Awaited lists the items that are waited for: while changes are made those that are in effect,
// and in a rollback those that are restored.
func Awaited(t *api.Transaction) []int {
	switch t.Status.Phase {
	case api.PhaseCommitting:
		return Waiting(t.Status.Items)
	case api.PhaseRollingBack:
		var out []int
		for i := range t.Status.Items {
			if Restoring(&t.Status.Items[i]) {
				out = append(out, i)
			}
		}
		return out
	}
	return nil
}

// WaitTimes are where the status has the times of the wait for an item.
type WaitTimes struct{ Start, Hold, Ready **metav1.Time }

// TimesOf returns those of the wait that an item is in.
func TimesOf(item *api.Item) WaitTimes {
	if w := item.RollbackWait; Restoring(item) {
		return WaitTimes{&w.StartTime, &w.HoldStartTime, &w.ReadyTime}
	}
	return WaitTimes{&item.WaitStartTime, &item.HoldStartTime, &item.ReadyTime}
}

// BeginRollbackWait records that the compensation of an item is made, and waited for.
func BeginRollbackWait(item *api.Item, now metav1.Time) {
	item.RollbackWait = &api.RollbackWait{StartTime: &now}
	SetItemState(item, item.State)
}

// EndWait records that what an item is waited for is so. A compensation is over then.
func EndWait(item *api.Item, now *metav1.Time) error {
	*TimesOf(item).Ready = now
	if Restoring(item) {
		return MoveItem(item, api.ItemRolledBack)
	}
	return nil
}

// notReady reports whether an item is restored, and did not become ready.
func notReady(item *api.Item) bool {
	return item.State == api.ItemUnresolved && item.RollbackWait != nil
}

// LeaveNotReady records that an item is restored, and is not waited for any more.
func LeaveNotReady(item *api.Item, reason, message string) error {
	item.RollbackWait.Reason, item.RollbackWait.Message = item.Reason, item.Message
	item.Reason, item.Message = reason, errclass.Printable(message)
	return MoveItem(item, api.ItemUnresolved)
}

// ReadyTimeout is how long item i may take to be done once it is in effect, or restored; nil for
// no limit.
func ReadyTimeout(t *api.Transaction, i int) *api.Duration {
	timeout, _ := waitOf(t, i)
	return timeout
}

// HoldFor is how long what item i waits for has to hold before it is done.
func HoldFor(t *api.Transaction, i int) time.Duration {
	_, hold := waitOf(t, i)
	return Duration(hold, 0)
}

// waitOf returns the limits of the wait that item i is in. Of a spec that another client has cut
// short there are none.
func waitOf(t *api.Transaction, i int) (timeout, hold *api.Duration) {
	if i >= len(t.Spec.Changes) {
		return nil, nil
	}
	switch c := ChangeOf(t, i); {
	case Restoring(&t.Status.Items[i]) && c.Rollback == nil:
		return nil, nil
	case Restoring(&t.Status.Items[i]):
		return c.Rollback.ReadyWhen.Timeout, c.Rollback.ReadyWhen.HoldFor
	case c.ReadyWhen != nil:
		return c.ReadyWhen.Timeout, c.ReadyWhen.HoldFor
	case c.GoneWhen != nil:
		return c.GoneWhen.Timeout, c.GoneWhen.HoldFor
	}
	return nil, nil
}

// HoldLeft is how much longer what item i waits for has to hold, now that it does. Times are
// kept by the second.
func HoldLeft(t *api.Transaction, i int, now time.Time) time.Duration {
	since := *TimesOf(&t.Status.Items[i]).Hold
	if since == nil {
		return 0
	}
	return since.Add(HoldFor(t, i) + time.Second).Sub(now)
}

// MustHold reports whether item i is done only after what it waits for has held for a while.
func MustHold(t *api.Transaction, i int) bool { return HoldFor(t, i) > 0 }

// RollbackOverdue reports whether a rollback has had its time.
func RollbackOverdue(t *api.Transaction, now time.Time) bool {
	start := t.Status.RollbackStartTime
	return start != nil && now.After(start.Add(Timeout(t)))
}

// Behind tells which items are rolled back only after others that are waited for. It goes
// through the items in reverse order.
type Behind struct {
	t        *api.Transaction
	schedule Schedule
	on       [][]int
	held     map[int]bool
	any      bool
}

// BehindOf begins with no item that is waited for.
func BehindOf(t *api.Transaction, s Schedule) *Behind {
	return &Behind{t: t, schedule: s, held: map[int]bool{}}
}

// Add notes that item i is waited for: what comes before it in the order waits for it, what it
// depends on, and what these come after or depend on in their turn.
func (b *Behind) Add(i int) {
	first := !b.any
	if b.any = true; b.schedule.needs == nil {
		return
	}
	if first {
		b.on = dependencies(b.t, b.schedule.Order)
	}
	b.held[i] = true
	for next := []int{i}; len(next) > 0; next = next[1:] {
		before := b.schedule.needs[next[0]]
		if b.on != nil {
			before = slices.Concat(before, b.on[next[0]])
		}
		for _, j := range before {
			if !b.held[j] {
				b.held[j], next = true, append(next, j)
			}
		}
	}
}

// Holds reports whether item i is to be rolled back only after one of those.
func (b *Behind) Holds(i int) bool {
	return b.any && (b.schedule.needs == nil || b.held[i])
}

// waitAgain has an item waited for once more that is restored, and did not become ready.
func waitAgain(item *api.Item, now metav1.Time) error {
	item.Reason, item.Message = item.RollbackWait.Reason, item.RollbackWait.Message
	if err := MoveItem(item, api.ItemRollingBack); err != nil {
		return err
	}
	BeginRollbackWait(item, now)
	return nil
}

// namesOf lists items that are as one is to be, by name and target.
func namesOf(items []api.Item, is func(*api.Item) bool) []string {
	var out []string
	for i := range items {
		if item := &items[i]; is(item) {
			out = append(out, item.Name+" ("+item.Target.String()+")")
		}
	}
	return slices.Clip(out)
}
