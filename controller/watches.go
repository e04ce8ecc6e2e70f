package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	api "janus.io/janus/api/v1alpha1"
)

// watches are the namespaces whose Transactions are watched. One namespace may stand for all.
type watches struct {
	mu sync.Mutex
	of map[string]*watch
	// known is set once it has been said which they are.
	known bool
	// news tells that there are watches to begin or to end.
	news chan struct{}
	// synced is set once the Transactions of all have been listed, and stays so: a namespace
	// that comes later keeps nobody from going on with the others.
	synced atomic.Bool
}

// watch is of the Transactions of one namespace. A namespace that has left the set is watched until the
// Transactions that were begun there have ended.
type watch struct {
	informer cache.SharedIndexInformer
	running  sync.WaitGroup // of runs of its Transactions
	stop     context.CancelFunc

	leaving atomic.Bool
	// over is since when no Transaction of a namespace that has left was seen to be begun.
	over time.Time
}

func newWatches() *watches { return &watches{of: map[string]*watch{}, news: make(chan struct{}, 1)} }

// tell wakes Watch up.
func (w *watches) tell() {
	select {
	case w.news <- struct{}{}:
	default: // It is about to look.
	}
}

// at returns the watch that a namespace falls under; nil if there is none.
func (w *watches) at(namespace string) *watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.locked(namespace)
}

func (w *watches) locked(namespace string) *watch {
	if own := w.of[namespace]; own != nil {
		return own
	}
	return w.of[metav1.NamespaceAll]
}

// enter is at for a caller that runs a Transaction of the namespace, and says when that has
// ended.
func (w *watches) enter(namespace string) *watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	entered := w.locked(namespace)
	if entered != nil {
		entered.running.Add(1)
	}
	return entered
}

// all returns the watches as they are now.
func (w *watches) all() []*watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.of))
}

// haveSynced reports whether it is known which namespaces are watched, and all have been listed.
func (w *watches) haveSynced() bool {
	if w.synced.Load() {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, each := range w.of {
		if !each.informer.HasSynced() {
			return false
		}
	}
	if w.known {
		w.synced.Store(true)
	}
	return w.known
}

// SetNamespaces says of which namespaces to run Transactions, and which others to watch until
// those have ended that were begun there. A namespace that is watched and not named any more
// becomes one of the latter. It may be called at any time, by one goroutine.
func (c *Controller) SetNamespaces(namespaces, leaving []string) error {
	wanted := map[string]bool{}
	for _, namespace := range namespaces {
		wanted[namespace] = true
	}
	var come []*watch
	c.watches.mu.Lock()
	defer func() {
		c.watches.mu.Unlock()
		for _, each := range come {
			c.enqueueAll(each)
		}
		c.watches.tell()
	}()
	for namespace, each := range c.watches.of {
		if wanted[namespace] == each.leaving.Load() {
			each.over = time.Time{}
			if each.leaving.Store(!wanted[namespace]); wanted[namespace] {
				come = append(come, each) // It has come back.
			}
			c.log.Info("the namespaces whose Transactions are run have changed", zap.String("namespace", namespace), zap.Bool("watched", wanted[namespace]))
		}
	}
	for _, namespace := range slices.Concat(namespaces, leaving) {
		if c.watches.of[namespace] != nil {
			continue
		}
		each, err := c.newWatch(namespace)
		if err != nil {
			return err
		}
		each.leaving.Store(!wanted[namespace])
		c.watches.of[namespace] = each
	}
	c.watches.known = true
	return nil
}

func (c *Controller) newWatch(namespace string) (*watch, error) {
	from := cache.NewFilteredListWatchFromClient(c.watcher, api.Resource.Resource, namespace, func(o *metav1.ListOptions) {
		if c.options.Selector != nil {
			o.LabelSelector = c.options.Selector.String()
		}
	})
	informer := cache.NewSharedIndexInformer(from, &decoded{}, 0, cache.Indexers{})
	if err := informer.SetTransform(c.trim); err != nil {
		return nil, fmt.Errorf("watch Transactions in %q: %w", namespace, err)
	}
	each := &watch{informer: informer}
	if _, err := informer.AddEventHandler(c.handlers()); err != nil {
		return nil, fmt.Errorf("watch Transactions in %q: %w", namespace, err)
	}
	return each, nil
}

// lookAgain is how often it is seen to what is to leave, and linger for how long a namespace is
// watched after the last Transaction there has ended that was begun: one that is begun at the
// last moment is not seen at once, and what was made late is removed when it can land no more.
const (
	lookAgain = time.Second
	linger    = 30 * time.Second
)

// Watch watches the Transactions of the namespaces until ctx is done. It is to be called once,
// beside Run.
func (c *Controller) Watch(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	ticker := c.options.Clock.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		c.watches.mu.Lock()
		for _, each := range c.watches.of {
			if each.stop == nil {
				watching, stop := context.WithCancel(ctx)
				each.stop = stop
				all.Go(func() { each.informer.RunWithContext(watching) })
			}
		}
		c.watches.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-c.watches.news:
		case <-ticker.C():
			c.dropLeft(ctx)
		}
	}
}

// dropLeft ends the watches of namespaces that have left, where nothing is left to be finished.
func (c *Controller) dropLeft(ctx context.Context) {
	now := c.options.Clock.Now()
	var left []string
	c.watches.mu.Lock()
	for namespace, each := range c.watches.of {
		switch {
		case !each.leaving.Load():
		case !each.informer.HasSynced() || each.hasBegun():
			each.over = time.Time{}
		case each.over.IsZero() || now.Before(each.over):
			each.over = now
		case now.Sub(each.over) >= c.options.Linger:
			left = append(left, namespace)
		}
	}
	c.watches.mu.Unlock()
	for _, namespace := range left {
		c.drop(ctx, namespace)
	}
}

// drop ends the watch of a namespace, unless the API server knows of a Transaction that was
// begun there, or it has come back.
func (c *Controller) drop(ctx context.Context, namespace string) {
	log := c.log.With(zap.String("namespace", namespace))
	if c.options.Begun != nil {
		begun, err := c.options.Begun(ctx, namespace)
		if err != nil {
			log.Warn("looking for Transactions to be finished failed; trying again", zap.Error(err))
		}
		if err != nil || begun {
			return
		}
	}
	c.watches.mu.Lock()
	each := c.watches.of[namespace]
	if each == nil || !each.leaving.Load() {
		c.watches.mu.Unlock()
		return
	}
	delete(c.watches.of, namespace)
	c.watches.mu.Unlock()
	if each.stop != nil {
		each.stop()
	}
	each.running.Wait()
	c.forget(func(name types.NamespacedName) bool { return name.Namespace == namespace })
	log.Info("a namespace is not watched any more")
	if c.options.Left != nil {
		c.options.Left(namespace)
	}
}

// hasBegun reports whether a Transaction is to be finished, as far as the watch has told.
func (w *watch) hasBegun() bool {
	for _, obj := range w.informer.GetStore().List() {
		if g, ok := obj.(*summary); ok && g.begun {
			return true
		}
	}
	return false
}

// enqueueAll queues what a watch has told of already.
func (c *Controller) enqueueAll(each *watch) {
	for _, obj := range each.informer.GetStore().List() {
		c.enqueue(obj)
	}
}
