package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
)

// Reader reads a Transaction from the API server, nil if it does not exist.
type Reader interface {
	Read(ctx context.Context, name types.NamespacedName) (*api.Transaction, error)
}

// Options say what to watch and how hard to work.
type Options struct {
	// Namespaces to watch, each named once; none means all.
	Namespaces []string
	// Workers is how many Transactions are run at once.
	Workers int
	// Turn is after how long a Transaction makes room for those of other namespaces that
	// wait for a worker; zero means DefaultTurn.
	Turn time.Duration
	// Shards is how many shards the Transactions are divided into, each of which is run only
	// while Serve is. Zero or one means that they are not divided, and Run runs them all.
	Shards int
	// Retention is how many that have ended are kept.
	Retention Retention
	// Resync is how often every Transaction is looked at again although nothing
	// was heard of it.
	Resync time.Duration
}

// Controller runs Transactions as they come.
type Controller struct {
	engine    *engine.Engine
	reader    Reader
	log       *zap.Logger
	options   Options
	informers []cache.SharedIndexInformer
	held      *heldShards
	line      *line
	queue     workqueue.TypedRateLimitingInterface[types.NamespacedName]
}

// DefaultTurn is much longer than a step takes: to take a Transaction up again costs a
// few requests.
const DefaultTurn = time.Second

// New makes a Controller. watcher is of NewWatcher.
func New(e *engine.Engine, reader Reader, watcher cache.Getter, log *zap.Logger, o Options) (*Controller, error) {
	if o.Turn <= 0 {
		o.Turn = DefaultTurn
	}
	c := &Controller{engine: e, reader: reader, log: log, options: o, held: newHeldShards(), line: newLine()}
	c.queue = newQueue(c.line)
	namespaces := o.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		from := cache.NewListWatchFromClient(watcher, api.Resource.Resource, namespace, fields.Everything())
		informer := cache.NewSharedIndexInformer(from, &decoded{}, o.Resync, cache.Indexers{})
		if err := informer.SetTransform(trim); err != nil {
			return nil, fmt.Errorf("watch Transactions in %q: %w", namespace, err)
		}
		if _, err := informer.AddEventHandler(c.handlers()); err != nil {
			return nil, fmt.Errorf("watch Transactions in %q: %w", namespace, err)
		}
		c.informers = append(c.informers, informer)
	}
	return c, nil
}

// Run works until ctx is done, finishes the steps in flight and returns. It returns
// an error when the Transactions cannot be listed.
func (c *Controller) Run(ctx context.Context) error {
	if c.options.Shards <= 1 {
		c.held.begin(0)
		defer c.held.end(0)
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer c.queue.ShutDown()
	for _, informer := range c.informers {
		all.Go(func() { informer.RunWithContext(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), c.synced()...) {
		return nil
	}
	c.log.Info("watching Transactions", zap.Int("workers", c.options.Workers), zap.Strings("namespaces", c.options.Namespaces))
	for range c.options.Workers {
		all.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	if !c.options.Retention.isAll() {
		all.Go(func() { c.retire(ctx) })
	}
	<-ctx.Done()
	c.log.Info("stopping: the steps in flight are finished first")
	return nil
}

// Synced reports whether every Transaction has been listed.
func (c *Controller) Synced() bool {
	for _, synced := range c.synced() {
		if !synced() {
			return false
		}
	}
	return true
}

func (c *Controller) synced() []cache.InformerSynced {
	var out []cache.InformerSynced
	for _, informer := range c.informers {
		out = append(out, informer.HasSynced)
	}
	return out
}

// watched reports whether a Transaction exists, as far as the watch has told.
func (c *Controller) watched(name types.NamespacedName) bool {
	for _, informer := range c.informers {
		if _, exists, err := informer.GetStore().GetByKey(name.String()); err == nil && exists {
			return true
		}
	}
	return false
}

// next runs one Transaction from the queue; false when the queue has shut down.
func (c *Controller) next(ctx context.Context) bool {
	name, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(name)
	term := c.held.enter(c.shardOf(name))
	if term == nil {
		c.queue.Forget(name) // It is in a shard that was released since it was queued.
		return true
	}
	defer term.running.Done()
	if ctx.Err() != nil {
		return true
	}
	result := c.run(ctx, term, name)
	switch {
	case result.Err != nil && (ctx.Err() != nil || term.ended()):
		c.tidy(context.WithoutCancel(ctx), name)
	case result.Err != nil:
		if result.Progressed {
			c.queue.Forget(name) // What failed before has succeeded since.
		}
		c.queue.AddRateLimited(name)
		if result.Within > 0 {
			c.queue.AddAfter(name, result.Within) // Whichever is sooner counts.
		}
	case result.After > 0:
		c.queue.Forget(name)
		c.queue.AddAfter(name, result.After)
	default:
		c.queue.Forget(name)
	}
	return true
}

// tidy takes the place of another attempt when there will be none: the last one may have
// failed because another process has ended the Transaction.
func (c *Controller) tidy(ctx context.Context, name types.NamespacedName) {
	t, err := c.reader.Read(ctx, name)
	if err == nil && t != nil {
		err = c.engine.Tidy(ctx, t)
	}
	if err != nil {
		c.log.Warn("releasing what a deleted Transaction held failed", zap.String("namespace", name.Namespace), zap.String("name", name.Name), zap.Error(err))
	}
}

func (c *Controller) run(ctx context.Context, term *heldShard, name types.NamespacedName) (result engine.Result) {
	log := c.log.With(zap.String("namespace", name.Namespace), zap.String("name", name.Name))
	t, err := c.reader.Read(ctx, name)
	if err != nil {
		log.Warn("reading the Transaction failed; trying again", zap.Error(err), zap.Int("attempt", c.queue.NumRequeues(name)+1))
		return engine.Result{Err: err}
	}
	if t == nil {
		if c.watched(name) {
			// A read and the watch contradict each other: whichever is behind will catch up.
			return engine.Result{Err: fmt.Errorf("the API server has no Transaction %s, and has not reported its deletion", name)}
		}
		return c.engine.Vanished(ctx, name)
	}
	log = log.With(zap.String("uid", string(t.UID)))
	defer func() {
		if p := recover(); p != nil {
			// One Transaction must not end what others rely on. spec.timeout ends it, if
			// nothing else does.
			c.engine.Distrust(t)
			log.Error("a step panicked, which is a defect of janusd; trying again", zap.Any("panic", p), zap.Stack("stack"))
			result = engine.Result{Err: fmt.Errorf("a step of Transaction %s panicked: %v", name, p)}
		}
	}()
	log.Debug("running", zap.String("phase", string(t.Status.Phase)), zap.Int64("version", t.Status.Version))
	turn, end := c.turn(ctx, term, name.Namespace)
	defer end()
	result = c.engine.Run(turn, t)
	switch {
	case result.Err != nil:
		log.Warn("a step failed; trying again", zap.Error(result.Err), zap.Int("attempt", c.queue.NumRequeues(name)+1))
	case turn.Err() != nil && ctx.Err() == nil && !term.ended() && result == (engine.Result{}):
		c.queue.Add(name) // It has made room for others, or has ended just then.
	}
	return result
}
