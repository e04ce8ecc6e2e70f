package engine

import (
	"context"

	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/internal/outcome"
)

// compensation is one that is sent, and what has come of it.
type compensation struct {
	in     Intent
	sent   bool
	undone outcome.Undone
	err    error
}

// sendUndos rolls items back side by side. Those of a list begin in their order, each when the values
// of the one before are restored; after one that was refused before that, none begins, nor when
// something else is to be done.
func (s rollback) sendUndos(ctx context.Context, all []compensation) {
	begin := make([]chan bool, len(all)+1)
	for n := range begin {
		begin[n] = make(chan bool, 1)
	}
	pass := func(n int, on bool) {
		select {
		case begin[n] <- on:
		default: // It was told before.
		}
	}
	pass(0, true)
	if !plan.ScheduleOf(s.txn).IsList() {
		for n := range all {
			pass(n, true)
		}
	}
	fanout.Do(len(all), len(all), func(n int) {
		c := &all[n]
		defer pass(n+1, false) // unless it was told otherwise
		if !<-begin[n] {
			return
		}
		if c.sent = s.takeUp(c.in.Index(), n == 0); !c.sent {
			return
		}
		c.in.restored = func() { pass(n+1, true) }
		if c.undone, c.err = s.Changes.Undo(ctx, c.in); c.err == nil {
			pass(n+1, true)
		}
	})
}

// takeUp notes that a compensation is sent, while others are under way, which may take the
// Transaction over. It is not sent if it is not the first and something else is to be done.
func (s rollback) takeUp(i int, first bool) bool {
	defer s.ask.take()()
	if !first && (s.enough() || s.due()) {
		return false
	}
	s.flight.Happened(i, plan.TakenUp)
	return true
}
