package plan

import (
	"slices"

	api "janus.io/janus/api/v1alpha1"
)

// decideRollingBack goes through the items in reverse order.
func decideRollingBack(t *api.Transaction, flight InFlight) Action {
	still, schedule := RollbackStopped(t), ScheduleOf(t)
	flight.again = t.Status.Recoveries > 0 || t.Status.HandledRecovery != ""
	order := schedule.Order
	if flight.ReadyCheckDue && !still {
		return Action{Verb: CheckReady}
	}
	if i, found := unclear(t.Status.Items, order); found {
		return Action{Verb: ObserveUndo, Item: i}
	}
	spared := false
	held, behind := HeldOf(t, t.Status.Items, flight.over), BehindOf(t, schedule)
	for n, i := range slices.Backward(order) {
		switch state, closed := t.Status.Items[i].State, held.closed(t.Status.Items, i); {
		case Restoring(&t.Status.Items[i]):
			behind.Add(i)
			spared = spared || still
		case !still && behind.Holds(i):
			continue // What is rolled back before it is waited for.
		case !still && held.waits(i) && !held.stays(i):
			continue // It was refused, or what is rolled back before it was.
		case flight.over(i) && RestoredWhen(t, i):
			return Action{Verb: Record} // The wait begins with the record.
		case state == api.ItemCommitting && spared:
			continue // A later change of the same object stays in effect.
		case state == api.ItemCommitting:
			return Action{Verb: ObserveUndo, Item: i}
		case !closed && state != api.ItemRollingBack || flight.over(i):
			continue
		case still && (closed || flight.untouched(i)):
			spared = true
		case !still && held.stays(i):
			return leave(t, flight, held, i)
		case (flight.Due || closed) && flight.Known.Any(Over):
			return Action{Verb: Record}
		case state == api.ItemRollingBack && still:
			return Action{Verb: SkipUndo, Item: i}
		case state == api.ItemRollingBack:
			return Action{Verb: Undo, Item: i, Items: undoneTogether(t, schedule, n, flight, held)}
		default:
			return Action{Verb: OpenUndo, Item: i}
		}
	}
	switch {
	case flight.Known.Any(Over):
		return Action{Verb: Record}
	case spared && t.Spec.Cancel == api.CancelStop:
		return Action{Verb: AcceptPartial}
	case spared:
		return standStill(t)
	case behind.any:
		return Action{Verb: AwaitReady}
	case held.anyAside():
		return Action{Verb: RetryUndos}
	}
	return Action{Verb: FinishUndo}
}

// leave leaves item i, and all others that stay for the sake of others, in effect. Of one whose
// compensation may have begun it is to be found out first, which is possible unless a later
// change of the object is in effect.
func leave(t *api.Transaction, flight InFlight, held Held, i int) Action {
	left := func(j int) bool {
		state := t.Status.Items[j].State
		return state == api.ItemCommitted || state == api.ItemRollingBack && !flight.over(j) && (held.stay[j].above || flight.untouched(j) || flight.Known[j].NoEffect() && !flight.again)
	}
	if !left(i) {
		return Action{Verb: SkipUndo, Item: i}
	}
	var these []int
	for j := range t.Status.Items {
		if held.stays(j) && left(j) {
			these = append(these, j)
		}
	}
	return Action{Verb: LeaveUndo, Item: i, Items: these}
}

// unclear returns the last open intent of a change that no other change of the same object
// covers: it is found out about before anything is rolled back, and one that is covered when
// its turn comes.
func unclear(items []api.Item, order []int) (int, bool) {
	if !slices.ContainsFunc(items, func(item api.Item) bool { return item.State == api.ItemCommitting }) {
		return 0, false
	}
	covered := map[api.Target]bool{}
	for _, i := range slices.Backward(order) {
		switch key := items[i].Target.Identity(); items[i].State {
		case api.ItemCommitting:
			if !covered[key] {
				return i, true
			}
		case api.ItemCommitted, api.ItemRollingBack, api.ItemUnresolved:
			covered[key] = true
		}
	}
	return 0, false
}
