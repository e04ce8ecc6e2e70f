package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
)

// Back-off between attempts at a Transaction that meets errors which may heal: each wait is
// twice as long as the one before, and up to half as long again, so that many that fail
// together do not all come back together.
const (
	DefaultRetryBase = 100 * time.Millisecond
	DefaultRetryMax  = 30 * time.Second
	retryJitter      = 0.5
)

// backOff is the wait before the next attempt at each Transaction.
type backOff struct {
	workqueue.TypedRateLimiter[types.NamespacedName]
}

func newBackOff(base, most time.Duration) backOff {
	return backOff{workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](base, most)}
}

// When implements workqueue.TypedRateLimiter.
func (b backOff) When(name types.NamespacedName) time.Duration {
	return wait.Jitter(b.TypedRateLimiter.When(name), retryJitter)
}

// newQueue makes the queue of the workers on a line.
func newQueue(l *line, again backOff) workqueue.TypedRateLimitingInterface[types.NamespacedName] {
	const name = "transactions"
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Name: name, Queue: l})
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		again,
		workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{
			Name: name,
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(
				workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Name: name, Queue: queue}),
		})
}

// line is the order in which Transactions get a worker: the namespaces that have any
// waiting take turns, and within one the first comes first. So however many wait in one
// namespace, another waits for one turn of each. It implements workqueue.Queue.
type line struct {
	mu      sync.Mutex
	waiting map[string][]types.NamespacedName // by namespace, none of them empty
	turns   []string                          // the namespaces that have any waiting
	length  int
}

func newLine() *line { return &line{waiting: map[string][]types.NamespacedName{}} }

// Touch implements workqueue.Queue: to be asked for again gets nobody ahead.
func (l *line) Touch(types.NamespacedName) {}

// Push implements workqueue.Queue.
func (l *line) Push(name types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting[name.Namespace]) == 0 {
		l.turns = append(l.turns, name.Namespace)
	}
	l.waiting[name.Namespace] = append(l.waiting[name.Namespace], name)
	l.length++
}

// Len implements workqueue.Queue.
func (l *line) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.length
}

// Pop implements workqueue.Queue, which calls it only if there is something.
func (l *line) Pop() types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	namespace := l.turns[0]
	l.turns = l.turns[1:]
	names := l.waiting[namespace]
	if len(names) > 1 {
		l.waiting[namespace] = names[1:]
		l.turns = append(l.turns, namespace)
	} else {
		delete(l.waiting, namespace)
	}
	l.length--
	return names[0]
}

// othersWait reports whether a Transaction of another namespace waits for a worker.
func (l *line) othersWait(namespace string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.turns) > 1 || len(l.turns) == 1 && l.turns[0] != namespace
}

// turn returns a context for a run that is done when the run is to end: its shard is given
// up, or it has had a worker for a while, and Transactions of other namespaces wait for
// one. The engine then returns between two steps. To be called just before the run, so
// that who makes room for others has always made a step.
func (c *Controller) turn(ctx context.Context, term *heldShard, namespace string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	forget := term.ends(cancel)
	ticker := time.NewTicker(c.options.Turn)
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if c.line.othersWait(namespace) {
					cancel()
				}
			}
		}
	}()
	return ctx, func() {
		forget()
		cancel()
	}
}
