package plan

import (
	"slices"

	api "janus.io/janus/api/v1alpha1"
)

// beside lists those of the given items, which come after one another in the order, that
// need not wait for any that is not done or over, up to so many.
func (s Schedule) beside(items []api.Item, candidates []int, over func(int) bool, most int) []int {
	if s.needs == nil {
		return candidates[:min(len(candidates), 1)]
	}
	var out []int
	for _, i := range candidates {
		if len(out) == most {
			break
		}
		if !slices.ContainsFunc(s.needs[i], func(j int) bool { return !over(j) && !done(&items[j]) }) {
			out = append(out, i)
		}
	}
	return out
}

// Window lists the changes to open next, so that no more than so many intents are open:
// those that can be made one after the other with nothing to write down in between.
func (s Schedule) Window(t *api.Transaction, most int) []int {
	items := t.Status.Items
	gated := func(i int) bool { return i < len(t.Spec.Changes) && Gated(ChangeOf(t, i)) }
	open := map[int]bool{}
	waited := len(Waiting(items))
	begin := func(i int) {
		if open[i] = true; gated(i) {
			waited++
		}
	}
	unsettled := settling(items, s.Order) >= 0
	for n, i := range s.Order {
		stuck := unsettled && s.unsettledBefore(items, n) // It is not made until that is settled.
		if items[i].State == api.ItemCommitting && !items[i].Failed && !stuck {
			begin(i)
		}
	}
	begun := func(i int) bool {
		return done(&items[i]) || open[i] && !gated(i)
	}
	var out []int
	for n, i := range s.Order {
		state := items[i].State
		switch {
		case len(open) >= most, waited >= s.width, s.needs == nil && n > 0 && !begun(s.Order[n-1]):
			return out
		case state != api.ItemPending && state != api.ItemPrepared:
			continue
		case s.needs != nil && slices.ContainsFunc(s.needs[i], func(j int) bool { return !begun(j) }):
			continue
		case state == api.ItemPending:
			return out // Its before-image comes first.
		}
		begin(i)
		out = append(out, i)
	}
	return out
}
