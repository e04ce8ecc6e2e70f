package oracle

import (
	"slices"

	api "janus.io/janus/api/v1alpha1"
)

// With whenFalse Delete, a change whose when is false deletes its target, and what depends on it is
// deleted before that. A run has the changes as they were made; what was asked for is kept apart.

// turning is what is known of the deletions of a run.
type turning struct {
	// asked are the changes as the spec has them.
	asked []api.Change
	// with are, for each change, the ones on whose target its own depends, as the spec has it: its target
	// is deleted with theirs.
	with [][]int
	// at is the first state that says of an item that it deletes its target instead; nil of others.
	at []*state
	// out are items that are not made because the target of another is deleted, or have nothing to delete.
	out []bool
}

// enterDeletions finds the changes that delete their targets instead.
func (r *run) enterDeletions() {
	asked := r.Spec.Changes
	r.turning = turning{asked: asked, with: make([][]int, len(asked)), at: make([]*state, len(asked)), out: make([]bool, len(asked))}
	if r.Spec.UndoOf != nil || !slices.ContainsFunc(asked, func(c api.Change) bool { return c.WhenFalse == api.WhenFalseDelete }) {
		return
	}
	for i := range asked {
		r.with[i] = r.deletedWith(i)
	}
	r.Spec.Changes = slices.Clone(asked)
	for _, s := range r.states {
		for i := range min(len(s.items), len(asked)) {
			r.out[i] = r.out[i] || s.items[i].in(api.ItemSkipped) && s.items[i].reason == "DependencyDeleted"
			if s.items[i].kind != string(api.Delete) || asked[i].Type == api.Delete || r.at[i] != nil {
				continue
			}
			r.at[i] = s
			c := &r.Spec.Changes[i]
			c.Type, c.Content, c.ContentFrom, c.ReadyWhen, c.FailWhen = api.Delete, nil, nil, nil, nil
			r.contents[i] = nil
		}
	}
}

// deletedWith are the earlier changes on whose targets that of a change depends by itself: by name, as the
// same object, and in a list by its content.
func (r *run) deletedWith(i int) []int {
	var out []int
	change := &r.Spec.Changes[i]
	for j := range r.Spec.Changes {
		other := &r.Spec.Changes[j]
		switch {
		case j == i:
		case slices.Contains(change.DependsOn, r.change(j)),
			j < i && r.Items[j] == r.Items[i] && change.Type != api.Await && other.Type != api.Await,
			j < i && !r.branches() && r.Items[j] != r.Items[i] && r.contents[i] != nil && other.Type != api.Delete && other.Type != api.Await && r.mentions(i, j):
			out = append(out, j)
		}
	}
	return out
}

// turns reports whether an item deletes its target instead, or is out because of another that does.
func (t *turning) turns(i int) bool { return i < len(t.at) && (t.at[i] != nil || t.out[i]) }

// turnsBefore reports whether an item that depends on another comes before the deletion of its target, or
// stands in the way of that since it has failed or is not made.
func (r *run) turnsBefore(i, j int) bool {
	return i != j && r.turns(j) && (r.turns(i) || r.falls(i))
}

// turnedAround turns dependencies around where targets are deleted: what depends on an object comes before its
// deletion, and what it depended on does not matter any more.
func (r *run) turnedAround(on [][]int) [][]int {
	if !slices.ContainsFunc(r.at, func(s *state) bool { return s != nil }) {
		return on
	}
	out := make([][]int, len(on))
	for i := range on {
		for _, j := range on[i] {
			switch {
			case r.turnsBefore(i, j):
				out[j] = append(out[j], i)
			case !r.turns(i):
				out[i] = append(out[i], j)
			}
		}
	}
	return out
}

// justAfter are the changes after which each comes in a list: all earlier ones, but that what is deleted
// with another comes right before it, the last first.
func (r *run) justAfter() [][]int {
	var order []int
	placed := make([]bool, len(r.Spec.Changes))
	place := func(i int) {
		if !placed[i] {
			placed[i], order = true, append(order, i)
		}
	}
	for i := range r.Spec.Changes {
		for j := len(placed) - 1; j > i && r.at[i] != nil && !placed[i]; j-- {
			if r.turns(j) && slices.Contains(deep(r.with, j), i) {
				place(j)
			}
		}
		place(i)
	}
	out := make([][]int, len(order))
	for n, i := range order {
		out[i] = slices.Clone(order[:n])
	}
	return out
}

// judgeDeletions: a target is deleted because a when was false that says so, its own or that of a change
// that this one depends on; whatever depends on it is deleted before, or was not there, or is not made. And
// one whose when was false is not left as it is, if it was there.
func (c *trial) judgeDeletions(r *run) {
	for i := range r.asked {
		if s := r.at[i]; s != nil && s.by != nil && !r.justified(s, i) {
			c.breach(Order, "%s: it deletes its target (@%d), and no when says so", r.named(i), s.Revision)
		}
		if r.at[i] == nil {
			c.judgeNotDeleted(r, i)
			continue
		}
		for _, w := range r.made(i, do) {
			c.judgeDependents(r, i, w)
		}
	}
}

// justified reports whether the when of an item, or of one that it depends on, was false and says that the
// target is deleted.
func (r *run) justified(s *state, i int) bool {
	says := func(j int) bool {
		holds, known := s.items[j].results["when"]
		return r.asked[j].WhenFalse == api.WhenFalseDelete && known && !holds && s.items[j].kind == string(api.Delete)
	}
	return says(i) || slices.ContainsFunc(deep(r.with, i), says)
}

// judgeNotDeleted: one whose when was false, and that says so, deletes its target.
func (c *trial) judgeNotDeleted(r *run, i int) {
	var was *state
	for _, s := range r.states {
		if was != nil && s.by != nil && i < len(s.items) && i < len(was.items) && r.asked[i].WhenFalse == api.WhenFalseDelete &&
			s.items[i].in(api.ItemSkipped) && s.items[i].reason == "WhenFalse" && !was.items[i].in(api.ItemSkipped) {
			c.breach(Order, "%s: its when is false (@%d), and its target is not deleted", r.named(i), s.Revision)
		}
		was = s
	}
}

// judgeDependents: when a target was deleted, nothing that depends on it was there because of this
// Transaction, or is made later.
func (c *trial) judgeDependents(r *run, i int, w *write) {
	s := r.before(w.made.Revision)
	for k := range r.asked {
		if k == i || s == nil || k >= len(s.items) || !slices.Contains(deep(r.with, k), i) {
			continue
		}
		item := &s.items[k]
		gone := r.at[k] != nil && (item.in(api.ItemCommitted) || c.madeBefore(r, s, k, w))
		if !gone && !item.in(api.ItemSkipped) {
			c.breach(Order, "%s: %s deleted %s@%d while item %d, which depends on it, was %s (@%d), deletes: %t",
				r.named(i), w.At, w.ref, w.made.Revision, k, item.state, s.Revision, r.at[k] != nil)
		}
	}
}
