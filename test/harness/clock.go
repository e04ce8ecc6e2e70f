package harness

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Clock is the real clock, which a test can turn. Timers and tickers run as ever:
// only what time it is changes.
type Clock struct {
	clock.RealClock
	mu     sync.Mutex
	offset time.Duration
	looks  int // how often the offset still counts; negative means for ever
}

// WithClock gives Janus, its engine and its locks, a clock.
func WithClock(c *Clock) Option { return func(s *settings) { s.clock = c } }

// Turn turns the clock forward, or back, and leaves it there.
func (c *Clock) Turn(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset, c.looks = c.offset+d, -1
}

// Jump turns the clock for so many looks at it, and back.
func (c *Clock) Jump(d time.Duration, looks int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset, c.looks = d, looks
}

// Now implements clock.PassiveClock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.RealClock.Now().Add(c.offset)
	if c.looks > 0 {
		if c.looks--; c.looks == 0 {
			c.offset = 0
		}
	}
	return now
}

// Since implements clock.PassiveClock.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
