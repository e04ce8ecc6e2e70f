package controller

import (
	"context"
	"slices"
	"strconv"
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
// namespace, another waits for one turn of each. A namespace that has as many workers as it
// may have gets no turn until one of them is done. It implements workqueue.Queue.
type line struct {
	// most is how many workers one namespace may have; zero means that it may have all.
	most int

	mu      sync.Mutex
	waiting map[string][]types.NamespacedName // by namespace, none of them empty
	turns   []string                          // the namespaces that have any waiting, and may have a worker
	length  int
	// running is how many workers a namespace has, and stuck how often in a row one of them was
	// stuck. Neither has zeros.
	running, stuck map[string]int
}

func newLine(most int) *line {
	return &line{most: most, waiting: map[string][]types.NamespacedName{}, running: map[string]int{}, stuck: map[string]int{}}
}

// Touch implements workqueue.Queue: to be asked for again gets nobody ahead.
func (l *line) Touch(types.NamespacedName) {}

// Push implements workqueue.Queue.
func (l *line) Push(name types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[name.Namespace] = append(l.waiting[name.Namespace], name)
	if len(l.waiting[name.Namespace]) == 1 && l.mayHave(name.Namespace) {
		l.turns = append(l.turns, name.Namespace)
	}
	l.length++
}

// mayHave reports whether a namespace may have one more worker. The lock is held.
func (l *line) mayHave(namespace string) bool {
	return l.most == 0 || l.free(namespace) > 0
}

// free is how many more workers a namespace may have, if their number is limited. The lock is held.
func (l *line) free(namespace string) int {
	return max(1, l.most>>l.stuck[namespace]) - l.running[namespace]
}

// Len implements workqueue.Queue. It is zero if nobody may have a worker: a worker that asks is
// then told nothing. When one is done, that one asks next.
func (l *line) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.turns) == 0 {
		return 0
	}
	return l.length
}

// Pop implements workqueue.Queue, which calls it only if there is something. The worker is the
// namespace's until done is called.
func (l *line) Pop() types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	namespace := l.turns[0]
	l.turns = l.turns[1:]
	names := l.waiting[namespace]
	l.running[namespace]++
	if len(names) == 1 {
		delete(l.waiting, namespace)
	} else if l.waiting[namespace] = names[1:]; l.mayHave(namespace) {
		l.turns = append(l.turns, namespace)
	}
	l.length--
	return names[0]
}

// wake is no Transaction: a worker that gets it asks again, and finds what there is for it. There is one
// for each worker that is to ask.
func wake(n int) types.NamespacedName { return types.NamespacedName{Name: strconv.Itoa(n)} }

func isWake(name types.NamespacedName) bool { return name.Namespace == "" }

// done gives back a worker of a namespace. If it was stuck, the namespace may have half as many
// as before, and one at least; otherwise it may have twice as many again. It returns for how many
// workers there is something to do beside the one that is done.
func (l *line) done(namespace string, stuck bool) (others int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[namespace]--; l.running[namespace] == 0 {
		delete(l.running, namespace)
	}
	before := l.stuck[namespace]
	switch {
	case stuck && l.most>>before > 1:
		l.stuck[namespace]++
	case !stuck && before > 1:
		l.stuck[namespace]--
	case !stuck:
		delete(l.stuck, namespace)
	}
	i := slices.Index(l.turns, namespace)
	switch may := len(l.waiting[namespace]) > 0 && l.mayHave(namespace); {
	case may && i < 0:
		l.turns = append(l.turns, namespace)
	case !may && i >= 0:
		l.turns = slices.Delete(l.turns, i, i+1)
	}
	if l.stuck[namespace] >= before {
		return 0 // That one asks for whatever there is.
	}
	return max(min(l.free(namespace), len(l.waiting[namespace]))-1, 0)
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
