package controller

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/wiring/leftovers"
)

// Leftovers finds out the leftovers of Transactions that have ended, as leftovers.Finder does.
type Leftovers interface {
	IsPlain(changes []leftovers.Change, items []leftovers.Item, images *api.RollbackRef) bool
	Find(ctx context.Context, ended []leftovers.Ended) (map[types.UID]bool, error)
	Remove(ctx context.Context, ended leftovers.Ended) error
}

// suspects are Transactions that ended a moment ago, and that this process knows by the watch alone:
// another process may have been late with one and have died. They are looked at together, when
// whatever that has sent has landed.
type suspects struct {
	clock clock.PassiveClock

	mu sync.Mutex
	of map[types.UID]*suspect
}

// suspect is one of them, and since when it is.
type suspect struct {
	ended *leftovers.Ended
	since time.Time
}

func newSuspects(c clock.PassiveClock) *suspects {
	return &suspects{clock: c, of: map[types.UID]*suspect{}}
}

// add notes one. What it was suspected for before still counts.
func (s *suspects) add(ended *leftovers.Ended) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.of[ended.UID]; !ok {
		s.of[ended.UID] = &suspect{ended, s.clock.Now()}
	}
}

// forget drops those that another process runs from now on.
func (s *suspects) forget(these func(types.NamespacedName) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, each := range s.of {
		if these(each.ended.Name) {
			delete(s.of, uid)
		}
	}
}

// ripe returns those that have been suspects for a time.
func (s *suspects) ripe(after time.Duration) []*suspect {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*suspect
	for _, each := range s.of {
		ago := now.Sub(each.since)
		if ago < 0 {
			each.since = now // The clock was put back.
		}
		if ago >= after {
			out = append(out, each)
		}
	}
	return out
}

// resolve drops one, unless it was forgotten meanwhile, and does what follows from it.
func (s *suspects) resolve(each *suspect, then func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[each.ended.UID] == each {
		delete(s.of, each.ended.UID)
		then()
	}
}

// isSuspect reports whether a Transaction is to be looked at together with others.
func (c *Controller) isSuspect(g *summary) bool {
	return c.options.Leftovers != nil && g.ended != nil && isOver(g) && !c.engine.Knows(g.uid)
}

// clearUp looks at the suspects until ctx is done.
func (c *Controller) clearUp(ctx context.Context) {
	settle := c.engine.SettleTime()
	ticker := c.options.Clock.NewTicker(max(settle/10, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			if ripe := c.suspects.ripe(settle); len(ripe) > 0 {
				c.lookAt(ctx, ripe)
			}
		}
	}
}

// lookAt finds out the leftovers of some suspects. Those that have something left are run, and so are
// all if that can't be told.
func (c *Controller) lookAt(ctx context.Context, these []*suspect) {
	ended := make([]leftovers.Ended, len(these))
	for i, each := range these {
		ended[i] = *each.ended
	}
	left, err := c.options.Leftovers.Find(ctx, ended)
	if ctx.Err() != nil {
		return
	}
	log := c.log.With(zap.Int("transactions", len(these)))
	if err != nil {
		log.Warn("looking for what Transactions may have left failed: each is looked at by itself", zap.Error(err))
	} else {
		log.Info("looked for what Transactions that ended a moment ago may have left", zap.Int("left", len(left)))
	}
	for _, each := range these {
		g := c.summaryOf(each.ended.Name)
		switch {
		case g == nil || g.uid != each.ended.UID:
			c.removeOf(ctx, each, left)
		case err != nil || left[each.ended.UID]:
			c.suspects.resolve(each, func() { c.queue.Add(g.name) })
		default:
			c.suspects.resolve(each, func() { c.engine.Clear(g.uid); c.expireLater(g) })
		}
	}
}

// removeOf removes the leftovers of a suspect that has been deleted. Where that can't be done it stays
// one.
func (c *Controller) removeOf(ctx context.Context, each *suspect, left map[types.UID]bool) {
	if left != nil && !left[each.ended.UID] {
		c.suspects.resolve(each, func() {})
		return
	}
	log := c.log.With(identified(each.ended.Name)...)
	t, err := c.reader.Read(ctx, each.ended.Name)
	if err == nil && t != nil && t.UID == each.ended.UID {
		c.suspects.resolve(each, func() { c.queue.Add(each.ended.Name) }) // The watch has told too much.
		return
	}
	if err == nil {
		err = c.options.Leftovers.Remove(ctx, *each.ended)
	}
	if err != nil {
		log.Warn("removing what a deleted Transaction has left failed", zap.Error(err))
		return
	}
	c.suspects.resolve(each, func() { log.Info("removed what a deleted Transaction has left") })
}

// summaryOf returns what the watch knows of a Transaction; nil if it knows none of that name.
func (c *Controller) summaryOf(name types.NamespacedName) *summary {
	each := c.watches.at(name.Namespace)
	if each == nil {
		return nil
	}
	obj, _, err := each.informer.GetStore().GetByKey(name.String())
	if err != nil {
		return nil
	}
	g, _ := obj.(*summary)
	return g
}

// trim cuts what the informer gets down to what is kept of it, and notes what may be left of a
// Transaction that ended a moment ago.
func (c *Controller) trim(obj any) (any, error) {
	trimmed, err := trim(obj)
	s, ok := obj.(*decoded)
	if err != nil || !ok || c.options.Leftovers == nil {
		return trimmed, err
	}
	g := trimmed.(*summary) //nolint:forcetypeassert // trim returns one for each decoded.
	if isOver(g) && c.engine.EndedLately(&g.completion) && !c.engine.Knows(g.uid) && !c.engine.IsCleared(g.uid) {
		g.ended = c.endedOf(s)
	}
	return g, nil
}

// endedOf is what is to be known of a Transaction to look at it together with others; nil if it is to
// be looked at by itself.
func (c *Controller) endedOf(s *decoded) *leftovers.Ended {
	var changes []leftovers.Change
	var items []leftovers.Item
	if json.Unmarshal(s.Spec.Changes, &changes) != nil || json.Unmarshal(s.Status.Items, &items) != nil ||
		!c.options.Leftovers.IsPlain(changes, items, s.Status.RollbackRef) {
		return nil
	}
	return &leftovers.Ended{Name: types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, UID: s.UID, Images: s.Status.RollbackRef}
}
