package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// resync has every Transaction looked at that was not for a while: should an event have got lost,
// nothing waits for it for ever. It counts from when a Transaction was last looked at, so one
// that is at work costs nothing more.
type resync struct {
	every time.Duration
	clock clock.WithTicker

	mu    sync.Mutex
	began time.Time
	seen  map[types.NamespacedName]time.Time
}

func newResync(every time.Duration, c clock.WithTicker) *resync {
	return &resync{every: every, clock: c, began: c.Now(), seen: map[types.NamespacedName]time.Time{}}
}

// looked notes that a Transaction has just been looked at.
func (r *resync) looked(name types.NamespacedName) {
	if r.every <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[name] = r.clock.Now()
}

// due reports of each Transaction that is known whether it is to be looked at now, and forgets
// the others. One that was never looked at counts from the beginning.
func (r *resync) due(known []*summary) []*summary {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*summary
	seen := make(map[types.NamespacedName]time.Time, len(r.seen))
	for _, g := range known {
		last, looked := r.seen[g.name]
		if !looked {
			last = r.began
		}
		ago := now.Sub(last)
		if ago >= r.every || ago < 0 {
			last, looked = now, true
			out = append(out, g)
		}
		if looked {
			seen[g.name] = last
		}
	}
	r.seen = seen
	return out
}

// period is how often it is found out what is due: so often that nothing waits for much longer.
func (r *resync) period() time.Duration {
	return max(min(r.every/10, time.Minute), 10*time.Millisecond)
}

// resyncs queues what is due until ctx is done.
func (c *Controller) resyncs(ctx context.Context) {
	ticker := c.options.Clock.NewTicker(c.resync.period())
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			var ours []*summary
			for g := range c.summaries() {
				if c.ours(g.name) && (g.ttl != nil || !c.isDone(g)) {
					ours = append(ours, g)
				}
			}
			for _, g := range c.resync.due(ours) {
				c.enqueue(g)
			}
		}
	}
}
