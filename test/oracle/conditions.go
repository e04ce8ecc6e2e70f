package oracle

import (
	"context"
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/expression"
)

// judgeConditions: what the status says of a condition was so at some time between the
// checkpoint before and the one that says so. Conditions that see other objects than the
// target are not judged: they are read one after the other.
func (c *trial) judgeConditions(r *run) {
	for i := range r.Spec.Changes {
		change := &r.Spec.Changes[i]
		c.judgeWhen(r, i)
		c.judgeActivation(r, i)
		text, hold := waitOf(change)
		begun := r.reached(i, api.ItemCommitted)
		if begun == nil || begun.by == nil {
			continue
		}
		if s := r.readyAt(i); s != nil && s.by != nil {
			if text != "" && !c.held(r, i, text, true, begun.Revision, s.Revision) {
				c.breach(Order, "%s: it is said to be ready (@%d), and %s was at no time true since @%d", r.named(i), s.Revision, text, begun.Revision)
			}
			since := s.items[i].holdTime
			if hold > 0 && !c.ClocksTurned && (since.IsZero() || s.items[i].readyTime.Sub(since) < hold) {
				c.breach(Order, "%s: it is said to be ready (@%d) at %s, and to be so since %q; it has to hold for %s",
					r.named(i), s.Revision, s.items[i].readyTime, since, hold)
			}
		}
		if s := r.failedAt(i); s != nil && s.by != nil && change.FailWhen != nil && text != "" &&
			!c.held(r, i, change.FailWhen.Expression, true, begun.Revision, s.Revision) {
			c.breach(Order, "%s: it is said to have failed (@%d), and %s was at no time true since @%d", r.named(i), s.Revision, change.FailWhen.Expression, begun.Revision)
		}
	}
}

// judgeResults: what a condition was found to be is on record with what followed from it.
func (c *trial) judgeResults(r *run) {
	for _, s := range r.states {
		for i := range min(len(s.items), len(r.Spec.Changes)) {
			item, change := &s.items[i], &r.Spec.Changes[i]
			want := map[string]bool{}
			switch {
			case item.in(api.ItemSkipped) && item.reason == "WhenFalse":
				want["when"] = false
			case item.in(api.ItemSkipped) && item.reason == "NotActivated":
				want["activation"] = false
			case r.at[i] != nil && r.at[i].Revision <= s.Revision:
				// By whose when it deletes is for judgeDeletions.
			case change.When != "" && item.prepared:
				want["when"] = true
			}
			if change.Activation != nil && item.prepared && r.Spec.UndoOf == nil {
				want["activation"] = true
			}
			switch {
			case item.ready && item.reason == "GuardBroken":
			case item.ready && change.GoneWhen != nil:
				want["goneWhen"] = true
			case item.ready:
				want["readyWhen"] = true
			}
			if item.back != nil && !item.back.ready.IsZero() {
				want["rollback.readyWhen"] = true
			}
			for name, holds := range want {
				if found, ok := item.results[name]; s.by != nil && (!ok || found != holds) {
					c.breach(Phases, "%s: its status (@%d) rests on %s being %t, and says of it %t (recorded: %t)", r.named(i), s.Revision, name, holds, found, ok)
				}
			}
		}
	}
}

// judgeWhen: a change was made because its when was true, or skipped because it was false.
func (c *trial) judgeWhen(r *run, i int) {
	text := r.Spec.Changes[i].When
	if text == "" {
		return
	}
	var was *state
	for _, s := range r.states {
		if r.at[i] == s {
			if _, own := s.items[i].results["when"]; own && was != nil && s.by != nil && !c.held(r, i, text, false, was.Revision, s.Revision) {
				c.breach(Order, "%s: it deletes its target (@%d), and its when (%s) was at no time false since @%d", r.named(i), s.Revision, text, was.Revision)
			}
			return
		}
		if was != nil && s.by != nil && i < len(s.items) && i < len(was.items) && was.items[i].in(api.ItemPending) && !s.items[i].in(api.ItemPending) {
			skipped := s.items[i].in(api.ItemSkipped)
			if (!skipped || s.items[i].reason == "WhenFalse") && !c.held(r, i, text, !skipped, was.Revision, s.Revision) {
				c.breach(Order, "%s: it is %s (@%d), and its when (%s) was at no time %t since @%d",
					r.named(i), s.items[i].state, s.Revision, text, !skipped, was.Revision)
			}
			return
		}
		was = s
	}
}

// waitOf is the expression that ends the wait of a change, and for how long it has to hold.
func waitOf(change *api.Change) (text string, hold time.Duration) {
	var d *api.Duration
	switch {
	case change.ReadyWhen != nil:
		text, d = change.ReadyWhen.Expression, change.ReadyWhen.HoldFor
	case change.GoneWhen != nil:
		text, d = change.GoneWhen.Expression, change.GoneWhen.HoldFor
	}
	return text, lasting(d)
}

// readyAt returns the first state that says that an item is ready.
func (r *run) readyAt(i int) *state {
	for _, s := range r.states {
		if i < len(s.items) && s.items[i].ready {
			return s
		}
	}
	return nil
}

// failedAt returns the first state that says that the wait for an item has failed.
func (r *run) failedAt(i int) *state {
	for _, s := range r.states {
		if i < len(s.items) && s.items[i].reason == "ReadyFailed" {
			return s
		}
	}
	return nil
}

// held reports whether an expression had a value on the target of an item at some time
// between two revisions. Of what cannot be told it says so, too.
func (c *trial) held(r *run, i int, text string, want bool, from, to int64) bool {
	e, err := expression.Compile(text)
	if err != nil || len(e.Names()) > 0 {
		return true
	}
	o := c.objects[r.Items[i]]
	is := func(v *version) bool {
		var content map[string]any
		if v != nil && !v.Deleted {
			content = v.Object.Object
		}
		got, err := e.Evaluate(context.Background(), content, nil)
		return err == nil && got == want
	}
	if is(o.at(from + 1)) {
		return true
	}
	for _, v := range o.all() {
		if v.Revision > from && v.Revision < to && is(v) {
			return true
		}
	}
	return false
}
