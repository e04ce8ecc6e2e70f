package oracle

import (
	"slices"
	"strings"

	api "janus.io/janus/api/v1alpha1"
)

// continues reports whether the others are to be made when a change fails.
func (r *run) continues() bool { return r.Spec.OnFailure == api.FailureContinue }

// finished reports whether a Transaction has nothing left to make in a state: what is neither in
// effect nor skipped was refused, and that was not to stop the others.
func (r *run) finished(s *state) bool {
	if r.continues() {
		return s.allIn(api.ItemCommitted, api.ItemSkipped, api.ItemRejected, api.ItemUnresolved)
	}
	return s.allIn(api.ItemCommitted, api.ItemSkipped)
}

// turned reports whether the rollback of a Transaction has ever begun.
func (r *run) turned() bool {
	return slices.ContainsFunc(r.states, func(s *state) bool { return s.phase == string(api.PhaseRollingBack) })
}

// endedInPart is the end of a Transaction that has left changes unmade, and rolled nothing back;
// nil if it has not ended so.
func (r *run) endedInPart() *state {
	s := r.end()
	if s == nil || !r.continues() || s.phase != string(api.PhaseFailed) || !r.begun() || r.turned() {
		return nil
	}
	return s
}

// endedInEffect reports whether a Transaction has ended with what it has made in effect, for good.
func (r *run) endedInEffect() bool {
	s := r.end()
	return s != nil && (s.phase == string(api.PhaseCommitted) || r.endedInPart() != nil && slices.ContainsFunc(s.items, func(i item) bool { return i.committed }))
}

// unwanted are the reasons of changes that were not to be made, and stopped those for which nothing
// further was.
var (
	unwanted = []string{"WhenFalse", "DependencySkipped", "DependencyDeleted", "NotActivated"}
	stopped  = []string{"DeadlineExceeded", "RetryLimitExceeded", "LockLost"}
)

// judgeContinued: with onFailure Continue, a change that fails keeps only what depends on it from
// being made. Nothing is rolled back unless that is asked for, and what was not made is told.
func (c *trial) judgeContinued(r *run) {
	var was *state
	for _, s := range r.states {
		for i := range s.items {
			if s.items[i].failed && (!r.continues() || s.phase == string(api.PhaseCommitted) || s.items[i].reason == "" || s.items[i].message == "") {
				c.breach(Atomicity, "%s item %d has failed (@%d), with reason %q, while it is %s and onFailure is %q",
					r, i, s.Revision, s.items[i].reason, s.phase, r.Spec.OnFailure)
			}
		}
		if was != nil && r.continues() && s.by != nil && was.phase == string(api.PhaseCommitting) && s.phase == string(api.PhaseRollingBack) && !rollbackAsked(was) {
			c.breach(Atomicity, "%s: it goes on when a change fails, and began to roll back (@%d) without being told to", r, s.Revision)
		}
		was = s
	}
	if s := r.endedInPart(); s != nil && len(s.items) == len(r.Items) {
		c.judgeInPart(r, s)
	}
}

// rollbackAsked reports whether a person has asked for a rollback, or for an end.
func rollbackAsked(s *state) bool {
	return str(s.Object.Object, "spec", "cancel") != "" || s.deleting
}

func (c *trial) judgeInPart(r *run, s *state) {
	for _, w := range r.writes {
		if w.role == undo && w.made != nil {
			c.breach(Atomicity, "%s: it goes on when a change fails, and %s undid %s@%d", r, w.At, w.ref, w.made.Revision)
		}
	}
	needs, whole := c.needs(r)
	failed := 0
	for i := range s.items {
		this := &s.items[i]
		if this.failed {
			failed++
		}
		switch {
		case this.in(api.ItemCommitted), this.failed, this.in(api.ItemSkipped) && (slices.Contains(unwanted, this.reason) || slices.Contains(stopped, this.reason)):
		case this.reason != "DependencyFailed":
			c.breach(Atomicity, "%s is %s at the end (@%d) with reason %q, and has not failed", r.named(i), this.state, s.Revision, this.reason)
		case whole && !r.hindered(s, needs, i):
			c.breach(Atomicity, "%s is not made (@%d), and nothing that it depends on has failed", r.named(i), s.Revision)
		}
		if !this.in(api.ItemCommitted) || r.turns(i) {
			continue
		}
		for _, j := range r.Spec.Changes[i].DependsOn {
			if k := slices.IndexFunc(s.items, func(other item) bool { return other.name == j }); k >= 0 && s.items[k].failed {
				c.breach(Order, "%s is made (@%d), and item %d, which it depends on, has failed", r.named(i), s.Revision, k)
			}
		}
	}
	if failed == 0 && !slices.ContainsFunc(s.items, func(i item) bool { return slices.Contains(stopped, i.reason) }) {
		c.breach(Atomicity, "%s is Failed (@%d), and no change has failed: %s", r, s.Revision, s.states())
	}
}

// falls reports whether an item has failed in the end, or is not made because of one that has.
func (r *run) falls(i int) bool {
	s := r.end()
	return s != nil && i < len(s.items) && (s.items[i].failed || s.items[i].in(api.ItemSkipped) && s.items[i].reason == "DependencyFailed")
}

// hindered reports whether an item depends, in the end, on one that has failed: by what it refers to,
// as a later change of the same object, or because that one was to make room for it.
func (r *run) hindered(s *state, needs [][]int, i int) bool {
	seen := map[int]bool{i: true}
	for next := []int{i}; len(next) > 0; next = next[1:] {
		for j := range s.items {
			same := r.Items[j] == r.Items[next[0]] && (j < next[0] || r.turnsBefore(j, next[0]))
			if seen[j] || !same && !slices.Contains(needs[next[0]], j) && !r.makesRoom(j, next[0]) {
				continue
			}
			if s.items[j].failed {
				return true
			}
			seen[j] = true
			next = append(next, j)
		}
	}
	return false
}

// makesRoom reports whether change j creates the Namespace of the target of item i, or the definition
// of its kind.
func (r *run) makesRoom(j, i int) bool {
	home, target := r.Items[j], r.Items[i]
	_, group, _ := strings.Cut(target.Resource, ".")
	switch home.Resource {
	case "namespaces":
		return home.Name == target.Namespace
	case "customresourcedefinitions.apiextensions.k8s.io":
		_, defined, _ := strings.Cut(home.Name, ".")
		return defined == group
	}
	return false
}
