package controller

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	api "janus.io/janus/api/v1alpha1"
)

// Retention is how many Transactions that have ended are kept in each namespace. The
// latest stay.
type Retention struct {
	// Completed is for those that are Committed or Planned, Failed for those that are
	// RolledBack or Failed; nil means all.
	Completed, Failed *int
	// Every is how often what is too many is looked for; zero means once a minute.
	Every time.Duration
}

func (r Retention) isAll() bool { return r.Completed == nil && r.Failed == nil }

// of returns the limit for a phase; nil if there is none.
func (r Retention) of(phase api.Phase) *int {
	switch phase {
	case api.PhaseCommitted, api.PhasePlanned:
		return r.Completed
	case api.PhaseRolledBack, api.PhaseFailed:
		return r.Failed
	}
	return nil
}

// retire has what is too many deleted, from time to time until ctx is done.
func (c *Controller) retire(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) {
		tooMany, uids := c.tooMany(), map[types.UID]bool{}
		for _, g := range tooMany {
			uids[g.uid] = true
		}
		c.engine.Retire(uids)
		for _, g := range tooMany {
			c.queue.Add(g.name)
		}
	}, cmp.Or(c.options.Retention.Every, time.Minute))
}

// tooMany lists the Transactions beyond what is to be kept that are run here, as far as the
// watch has told. Those that other replicas run count too: what is kept is so many of a
// namespace, however many replicas share it.
func (c *Controller) tooMany() []*summary {
	type pool struct {
		namespace string
		limit     *int
	}
	pools := map[pool][]*summary{}
	for g := range c.summaries() {
		limit := c.options.Retention.of(g.phase)
		if limit == nil || g.completion.IsZero() || g.stays || g.deleted {
			continue
		}
		in := pool{g.name.Namespace, limit}
		pools[in] = append(pools[in], g)
	}
	var out []*summary
	for in, those := range pools {
		slices.SortFunc(those, func(a, b *summary) int {
			return cmp.Or(b.completion.Compare(a.completion.Time), cmp.Compare(a.name.Name, b.name.Name))
		})
		for _, g := range those[min(*in.limit, len(those)):] {
			if c.ours(g.name) {
				out = append(out, g)
			}
		}
	}
	return out
}
