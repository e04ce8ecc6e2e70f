package plan

import (
	"slices"

	api "janus.io/janus/api/v1alpha1"
)

// inTurn is how many items of a list are rolled back at once: each begins when the values of the
// one before are restored, so that more than a few are seldom under way.
const inTurn = 8

// undoneTogether returns the items to roll back next, of which the n-th in order is the first. More
// than one are items that restore an object which was there, and that nothing was sent for, each one of
// its own, and none of them depends on another.
func undoneTogether(t *api.Transaction, schedule Schedule, n int, flight InFlight, held Held) []int {
	these, most := []int{schedule.Order[n]}, schedule.width
	if schedule.IsList() {
		most = inTurn
	}
	if !restoresAtOnce(t, these[0], flight) {
		return these
	}
	needed, objects := map[int]bool{}, map[api.Target]bool{t.Status.Items[these[0]].Target.Identity(): true}
	for _, i := range slices.Backward(schedule.Order[:n]) {
		switch last := these[len(these)-1]; {
		case len(these) >= most:
			return these
		case !inEffect(&t.Status.Items[i]) || flight.over(i):
			continue
		case !restoresAtOnce(t, i, flight), held.Needed(i), objects[t.Status.Items[i].Target.Identity()]:
			return these
		case !schedule.IsList():
			for _, j := range below(schedule.needs, last) {
				needed[j] = true
			}
			if needed[i] {
				return these
			}
		}
		these, objects[t.Status.Items[i].Target.Identity()] = append(these, i), true
	}
	return these
}

// restoresAtOnce reports whether item i is rolled back by restoring an object, nothing was sent for
// that, and nothing is waited for afterwards.
func restoresAtOnce(t *api.Transaction, i int, flight InFlight) bool {
	item := &t.Status.Items[i]
	restores := !Creates(t, i) && !Deletes(t, i)
	return restores && item.State == api.ItemRollingBack && flight.Known[i] == Unsent && !RestoredWhen(t, i) && !IsSetAside(item)
}
