package oracle

import (
	"regexp"
	"slices"
	"strings"

	api "janus.io/janus/api/v1alpha1"
)

// judgeNeeds: what an item depends on is in effect as long as the item is, in a rollback too. It is
// told from the spec, and apart from how Janus does.
func (c *trial) judgeNeeds(r *run) {
	needs, whole := c.needs(r)
	for _, w := range r.writes {
		if w.made == nil || w.item < 0 || w.role != undo {
			continue
		}
		s := r.before(w.made.Revision)
		if s == nil || len(s.items) != len(needs) {
			continue
		}
		for k := range needs {
			inEffect := s.items[k].in(api.ItemCommitting, api.ItemCommitted, api.ItemRollingBack, api.ItemUnresolved)
			if slices.Contains(needs[k], w.item) && inEffect && !r.compensatedBefore(s, k, w, nil) && !r.refusedBy(s, k, w.item) {
				c.breach(Order, "%s: %s undid %s@%d while item %d, which depends on it, was %s (@%d) and in effect",
					r.named(w.item), w.At, w.ref, w.made.Revision, k, s.items[k].state, s.Revision)
			}
		}
	}
	if s := r.end(); s != nil && s.phase == string(api.PhaseFailed) && len(s.items) == len(needs) {
		c.judgeBlocked(r, s, needs, whole)
	}
}

// judgeBlocked: at the end nothing is rolled back that an item in effect depends on, and what is
// Blocked names one that is the reason. That shows only where the evidence has all contents.
func (c *trial) judgeBlocked(r *run, s *state, needs [][]int, whole bool) {
	for k := range s.items {
		if !s.items[k].in(api.ItemUnresolved) {
			continue
		}
		for _, j := range needs[k] {
			if s.items[j].in(api.ItemRolledBack) && !r.awaits(j) && !r.refusedBy(s, k, j) && !r.undoneBefore(k, j) {
				c.breach(Order, "%s is rolled back (@%d), and item %d, which depends on it, is in effect (%s)", r.named(j), s.Revision, k, s.items[k].reason)
			}
		}
		if s.items[k].reason != "Blocked" {
			continue
		}
		by := slices.IndexFunc(s.items, func(other item) bool { return other.name == s.items[k].blockedBy })
		switch {
		case by < 0 || !s.items[by].in(api.ItemUnresolved):
			c.breach(Order, "%s is Blocked (@%d) by %q, which is not Unresolved", r.named(k), s.Revision, s.items[k].blockedBy)
		case whole && !slices.Contains(deep(needs, by), k) && (by < k || r.Items[by] != r.Items[k]):
			c.breach(Order, "%s is Blocked (@%d) by item %d, which neither depends on it nor changed it later", r.named(k), s.Revision, by)
		case !strings.Contains(s.items[k].message, s.items[by].name):
			c.breach(Order, "%s is Blocked (@%d) by %q, and does not say so: %s", r.named(k), s.Revision, s.items[k].blockedBy, s.items[k].message)
		}
	}
}

// undoneBefore reports whether item k was on record as rolled back or rejected, or not made, when
// item j was undone: nothing was in effect then that depended on it.
func (r *run) undoneBefore(k, j int) bool {
	for _, w := range r.made(j, undo) {
		if s := r.before(w.made.Revision); s != nil && s.items[k].in(api.ItemUnresolved, api.ItemRollingBack, api.ItemCommitted, api.ItemCommitting) {
			return false
		}
	}
	return true
}

// refusedBy reports whether what item j has changed may be why item k was refused: it was set
// aside, and j is of a kind by which requests are refused.
func (r *run) refusedBy(s *state, k, j int) bool {
	if !s.items[k].aside {
		return false
	}
	_, group, _ := strings.Cut(r.Items[j].Resource, ".")
	return s.items[k].reason == "WebhookUnavailable" || slices.Contains([]string{"admissionregistration.k8s.io", "rbac.authorization.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"}, group) ||
		slices.Contains([]string{"resourcequotas", "limitranges", "namespaces"}, r.Items[j].Resource)
}

// needs are the items that each item depends on: by dependsOn, by its expressions, its owners, and
// what its Pods name. Those of an undo are those of what it undoes, the other way round. whole says
// whether they can all be told.
func (c *trial) needs(r *run) (out [][]int, whole bool) {
	out = make([][]int, len(r.Spec.Changes))
	if r.Spec.UndoOf != nil {
		return c.reversed(r, out)
	}
	order := r.places()
	for i := range r.Spec.Changes {
		for j := range r.Spec.Changes {
			// Where one is deleted before the other instead, a graph has them in the order of that already.
			if (order[j] < order[i] || r.turnsBefore(i, j)) && r.refers(i, j) {
				out[i] = append(out[i], j)
			}
		}
	}
	return r.turnedAround(out), !slices.ContainsFunc(r.asked, func(c api.Change) bool { return c.ContentFrom != nil })
}

// reversed fills in those of an undo. Of several Transactions it is not known whether they are all:
// one change for each object stands for many.
func (c *trial) reversed(r *run, out [][]int) (on [][]int, whole bool) {
	whole = r.Spec.UndoOf.ToRevision == nil
	end := r.end()
	if end == nil || len(end.items) != len(out) {
		return out, false
	}
	undone := c.undone(r)
	if len(undone) == 0 {
		return out, false
	}
	for _, original := range undone {
		of, all := c.needs(original)
		whole = whole && all
		index := func(i int) int {
			if r.Spec.UndoOf.ToRevision != nil {
				return slices.Index(r.Items, original.Items[i]) // There is one item for each object.
			}
			return slices.IndexFunc(end.items, func(one item) bool { return one.name == original.change(i) })
		}
		for i := range of {
			// What depends on a change that has nothing to be undone stands in for it.
			for _, j := range deep(of, i) {
				later, earlier := index(i), index(j)
				if later >= 0 && earlier >= 0 && later < earlier && !slices.Contains(out[earlier], later) {
					out[earlier] = append(out[earlier], later)
				}
			}
		}
	}
	return out, whole
}

// places is where each change comes in the order. It follows from dependsOn, and otherwise from the
// list: what a change needs comes right before it.
func (r *run) places() []int {
	place, next := make([]int, len(r.Spec.Changes)), 1
	on := make([][]int, len(r.Spec.Changes))
	if r.branches() {
		on = r.orderedAfter()
	}
	var visit func(i int)
	visit = func(i int) {
		if place[i] != 0 {
			return
		}
		place[i] = -1
		for _, j := range on[i] {
			visit(j)
		}
		place[i], next = next, next+1
	}
	for i := range place {
		visit(i)
	}
	return place
}

// orderedAfter are the changes that each comes after in a graph: those that it depends on, and the
// one before of the same object.
func (r *run) orderedAfter() [][]int {
	out := r.dependencies()
	for i := range out {
		for j := i - 1; j >= 0; j-- {
			if r.Items[j] == r.Items[i] && (!r.turns(i) || !r.turns(j)) {
				out[i] = append(out[i], j)
				break
			}
		}
	}
	return out
}

var asked = regexp.MustCompile(`objects\.([a-z0-9_]+)|objects\["([-a-z0-9]+)"\]`)

// refers reports whether a change depends on an earlier one.
func (r *run) refers(i, j int) bool {
	if r.turns(i) && r.turns(j) {
		return slices.Contains(r.with[i], j)
	}
	change, name := &r.Spec.Changes[i], r.change(j)
	if slices.Contains(change.DependsOn, name) {
		return true
	}
	if r.Items[i] == r.Items[j] {
		return false
	}
	texts := change.When
	if change.ReadyWhen != nil {
		texts += " " + change.ReadyWhen.Expression
	}
	if change.GoneWhen != nil {
		texts += " " + change.GoneWhen.Expression
	}
	for _, found := range asked.FindAllStringSubmatch(texts, -1) {
		if found[1] == name || found[2] == name {
			return true
		}
	}
	return r.Spec.Changes[j].Type != api.Delete && !r.awaits(j) && r.contents[i] != nil && r.mentions(i, j)
}

// deep are all that an item depends on, in the end.
func deep(needs [][]int, i int) []int {
	var out []int
	for next := slices.Clone(needs[i]); len(next) > 0; next = next[1:] {
		if !slices.Contains(out, next[0]) {
			out, next = append(out, next[0]), append(next, needs[next[0]]...)
		}
	}
	return out
}
