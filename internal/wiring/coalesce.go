package wiring

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// coalescer do a piece of work for many callers at once: in each namespace one round at a
// time, and a caller shares one that begins after it has come. The round that is under
// way does not do for it, for that may have looked before. So however many come at the
// same time, there is the one round that is under way, and the next, for all of them.
type coalescer struct {
	// work does it, with the smallest limit of those who share the round.
	work func(ctx context.Context, namespace string, limit int) error

	mu sync.Mutex
	// last is the round of a namespace that has come last; none when all are over.
	last map[string]*round
}

// round is one that is under way, or waits for the one before it.
type round struct {
	begun   bool // or given up: nobody joins it any more
	limit   int
	waiting int // who has joined and not left
	stop    context.CancelFunc

	over     chan struct{}
	err      error
	panicked string
}

var errBrokenOff = errors.New("the work that was shared was broken off")

func newCoalescer(work func(ctx context.Context, namespace string, limit int) error) *coalescer {
	return &coalescer{work: work, last: map[string]*round{}}
}

// share returns what has come of a round that began after the call. Who leaves because ctx
// ends does not end it for the others. If the work panics, so does everybody who shares
// it, who can say for which Transaction.
func (r *coalescer) share(ctx context.Context, namespace string, limit int) error {
	joined := r.join(ctx, namespace, limit)
	select {
	case <-joined.over:
	case <-ctx.Done():
		r.leave(joined)
		return fmt.Errorf("wait for work that is shared in namespace %s: %w", namespace, context.Cause(ctx))
	}
	if joined.panicked != "" {
		panic(joined.panicked)
	}
	return joined.err
}

func (r *coalescer) join(ctx context.Context, namespace string, limit int) *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.last[namespace]
	if last != nil && !last.begun {
		last.limit, last.waiting = min(last.limit, limit), last.waiting+1
		return last
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	// With nobody to wait for it begins now, and not when its goroutine gets its turn.
	next := &round{begun: last == nil, limit: limit, waiting: 1, stop: stop, over: make(chan struct{})}
	r.last[namespace] = next
	go r.run(ctx, namespace, next, last)
	return next
}

// leave ends a round that nobody waits for any more.
func (r *coalescer) leave(left *round) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if left.waiting--; left.waiting == 0 {
		left.begun = true
		left.stop()
	}
}

func (r *coalescer) run(ctx context.Context, namespace string, this, before *round) {
	this.err = errBrokenOff
	defer r.end(namespace, this)
	defer func() {
		if p := recover(); p != nil {
			this.panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	if before != nil {
		<-before.over
	}
	limit := r.shut(this)
	if ctx.Err() == nil {
		this.err = r.work(ctx, namespace, limit)
	}
}

// shut keeps others from joining a round, and returns its limit, which is final then.
func (r *coalescer) shut(this *round) (limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	this.begun = true
	return this.limit
}

func (r *coalescer) end(namespace string, this *round) {
	this.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last[namespace] == this {
		delete(r.last, namespace)
	}
	close(this.over)
}
