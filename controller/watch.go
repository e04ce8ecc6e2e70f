package controller

import (
	"iter"

	"k8s.io/client-go/tools/cache"

	api "janus.io/janus/api/v1alpha1"
)

// handlers queue what has something to do. A worker follows its own status writes
// by itself, so an update counts only when another client is behind it: a new
// spec, a deletion, an annotation that asks for a recovery or approves a plan; or when the watch has begun again, and
// may have missed something, which changes nothing.
func (c *Controller) handlers() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.enqueue(obj) },
		UpdateFunc: func(before, after any) {
			if worthALook(before, after) {
				c.enqueue(after)
			}
			if g, ok := after.(*summary); ok && g.phase.Terminal() {
				c.heardOf(after)
			}
		},
		DeleteFunc: c.heardOf,
	}
}

func worthALook(before, after any) bool {
	b, ok1 := before.(*summary)
	a, ok2 := after.(*summary)
	if !ok1 || !ok2 {
		return true
	}
	return a.resourceVersion == b.resourceVersion || a.uid != b.uid || a.generation != b.generation || a.deleted != b.deleted || a.recover != b.recover || a.approval != b.approval
}

func (c *Controller) enqueue(obj any) {
	g, ok := obj.(*summary)
	if !ok || !c.ours(g.name) || !c.mayRun(g) {
		return
	}
	if c.isDone(g) {
		c.expireLater(g)
		return
	}
	if c.isSuspect(g) {
		c.suspects.add(g.ended)
		return
	}
	c.queue.Add(g.name)
}

// expireLater has a Transaction looked at when its time after its end is over.
func (c *Controller) expireLater(g *summary) {
	if !g.completion.IsZero() && g.ttl != nil {
		c.queue.AddAfter(g.name, c.engine.ExpiresIn(g.completion.Time, *g.ttl))
	}
}

// isDone reports whether nothing is to be done about a Transaction before its time after its end
// is over.
func (c *Controller) isDone(g *summary) bool {
	return isOver(g) && (!c.engine.EndedLately(&g.completion) || c.engine.IsCleared(g.uid))
}

// isOver reports whether a Transaction has ended for good.
func isOver(g *summary) bool {
	return g.phase.Terminal() && g.phase != api.PhaseFailed && !g.deleted && g.generation == g.observed
}

// mayRun reports whether a Transaction is to be run as far as its namespace goes: one that is to be left
// has those finished that were begun.
func (c *Controller) mayRun(g *summary) bool {
	from := c.watches.at(g.name.Namespace)
	return from != nil && (g.begun || !from.leaving.Load())
}

// summaries returns what the informers know, whichever replica runs it.
func (c *Controller) summaries() iter.Seq[*summary] {
	return func(yield func(*summary) bool) {
		for _, each := range c.watches.all() {
			for _, obj := range each.informer.GetStore().List() {
				if g, ok := obj.(*summary); ok && !yield(g) {
					return
				}
			}
		}
	}
}

// Active counts the Transactions that have not ended and are run here, by phase, from
// what the informers know: it is right as soon as they have synced. Those whose plan waits
// for approval are not among them.
func (c *Controller) Active() map[api.Phase]int {
	counts := map[api.Phase]int{}
	for g := range c.summaries() {
		if !g.phase.Terminal() && !g.standing && c.ours(g.name) && c.mayRun(g) {
			counts[g.phase]++
		}
	}
	return counts
}

// AwaitingApproval counts those whose plan waits for approval.
func (c *Controller) AwaitingApproval() (n int) {
	for g := range c.summaries() {
		if g.standing && c.ours(g.name) && c.mayRun(g) {
			n++
		}
	}
	return n
}
