package oracle

import (
	"slices"
	"time"

	api "janus.io/janus/api/v1alpha1"
)

// judgeReadyAgain: of a change with rollback.readyWhen the compensation is over only once that was
// so, and nothing that is rolled back after it is rolled back before that.
func (c *trial) judgeReadyAgain(r *run) {
	for i := range r.Spec.Changes {
		if r.Spec.Changes[i].Rollback != nil {
			c.judgeBackWait(r, i)
		}
	}
	on := r.dependencies()
	needs, _ := c.needs(r)
	for _, w := range r.writes {
		if w.made == nil || w.item < 0 || w.role != undo {
			continue
		}
		s := r.before(w.made.Revision)
		if s == nil || len(s.items) != len(on) || len(needs) != len(on) {
			continue
		}
		for k := range on {
			waited := r.Spec.Changes[k].Rollback != nil && s.items[k].in(api.ItemRollingBack) && !r.waits(s, needs, k)
			if waited && slices.Contains(deep(on, k), w.item) {
				c.breach(Order, "%s: %s undid %s@%d while item %d, which is rolled back before it, was not ready (@%d)",
					r.named(w.item), w.At, w.ref, w.made.Revision, k, s.Revision)
			}
		}
	}
}

// judgeBackWait holds what is said of the wait after a compensation against the target.
func (c *trial) judgeBackWait(r *run, i int) {
	when := r.Spec.Changes[i].Rollback.ReadyWhen
	var since *state
	for _, s := range r.states {
		if s.by == nil || i >= len(s.items) {
			continue
		}
		item := &s.items[i]
		switch {
		case item.in(api.ItemRolledBack) && (item.back == nil || item.back.ready.IsZero()):
			c.breach(Order, "%s: it is rolled back (@%d), and was not found ready", r.named(i), s.Revision)
			return
		case item.in(api.ItemRolledBack):
			if since == nil || when.Expression != "" && !c.held(r, i, when.Expression, true, since.Revision, s.Revision) {
				c.breach(Order, "%s: it is said to be ready since it was restored (@%d), and %s was at no time true", r.named(i), s.Revision, when.Expression)
			}
			if hold := lasting(when.HoldFor); hold > 0 && !c.ClocksTurned && (item.back.hold.IsZero() || item.back.ready.Sub(item.back.hold) < hold) {
				c.breach(Order, "%s: it is said to be ready (@%d) at %s, and to be so since %q; it has to hold for %s", r.named(i), s.Revision, item.back.ready, item.back.hold, hold)
			}
			return
		case item.in(api.ItemRollingBack) && item.back != nil && since == nil:
			since = s
		case !item.in(api.ItemRollingBack):
			since = nil
		}
	}
}

func lasting(d *api.Duration) time.Duration {
	if d == nil {
		return 0
	}
	out, _ := time.ParseDuration(string(*d))
	return out
}
