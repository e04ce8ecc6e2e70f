package controller

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/notify"
)

// Reader reads a Transaction from the API server, nil if it does not exist.
type Reader interface {
	Read(ctx context.Context, name types.NamespacedName) (*api.Transaction, error)
}

// Options say what to watch and how hard to work.
type Options struct {
	// Namespaces to watch, each named once; none means all.
	Namespaces []string
	// Changing says that none is watched until SetNamespaces is called.
	Changing bool
	// Begun asks the API server whether a Transaction that was begun in a namespace has not
	// ended, before that is not watched any more; it may be nil. Left is then called.
	Begun func(ctx context.Context, namespace string) (bool, error)
	Left  func(namespace string)
	// Linger is for how long a namespace that is to be left is watched after the last of them
	// has ended; zero means half a minute.
	Linger time.Duration
	// Selector, if there is one, is of the labels of the Transactions to run. Others do not
	// exist for the Controller.
	Selector labels.Selector
	// Workers is how many Transactions of one namespace are run at once, and Spare how many more
	// of others.
	Workers, Spare int
	// Turn is after how long a Transaction makes room for those of other namespaces that
	// wait for a worker; zero means DefaultTurn.
	Turn time.Duration
	// RetryBase is the wait after a failed attempt, and RetryMax the longest that it grows to;
	// zero means DefaultRetryBase and DefaultRetryMax.
	RetryBase, RetryMax time.Duration
	// Shards is how many shards the Transactions are divided into, each of which is run only
	// while Serve is. Zero or one means that they are not divided, and Work runs them all.
	Shards int
	// Retention is how many that have ended are kept.
	Retention Retention
	// Resync is after how long a Transaction is looked at again although nothing was heard of
	// it; zero means never.
	Resync time.Duration
	// Open begins to watch what a Transaction waits for; nil means that it is looked at again and
	// again.
	Open func(context.Context, notify.Object) (apiwatch.Interface, error)
	// Leftovers finds out together what may be left of many Transactions that ended a moment ago; nil
	// means that each is looked at.
	Leftovers Leftovers
	// Clock is nil for the real one.
	Clock clock.WithTickerAndDelayedExecution
}

func (o Options) withDefaults() Options {
	o.Turn = cmp.Or(o.Turn, DefaultTurn)
	o.RetryBase = cmp.Or(o.RetryBase, DefaultRetryBase)
	o.RetryMax = cmp.Or(o.RetryMax, DefaultRetryMax)
	o.Linger = cmp.Or(o.Linger, linger)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// Controller runs Transactions as they come.
type Controller struct {
	engine   *engine.Engine
	reader   Reader
	watcher  cache.Getter
	log      *zap.Logger
	options  Options
	watches  *watches
	held     *heldShards
	resync   *resync
	line     *line
	queue    workqueue.TypedRateLimitingInterface[types.NamespacedName]
	awaited  *notify.Watches // nil for none
	suspects *suspects
}

// DefaultTurn is much longer than a step takes: to take a Transaction up again costs a
// few requests.
const DefaultTurn = time.Second

// stuckTime is after how long an attempt that has failed, and got nowhere, was stuck: its requests were
// not answered, or time out. The namespace backs off, as others have use for the worker.
const stuckTime = 5 * time.Second

// New makes a Controller. watcher is of NewWatcher.
func New(e *engine.Engine, reader Reader, watcher cache.Getter, log *zap.Logger, o Options) (*Controller, error) {
	o = o.withDefaults()
	c := &Controller{
		engine: e, reader: reader, watcher: watcher, log: log, options: o,
		watches: newWatches(), held: newHeldShards(), resync: newResync(o.Resync, o.Clock), line: newLine(o.Workers), suspects: newSuspects(o.Clock),
	}
	c.queue = newQueue(c.line, newBackOff(o.RetryBase, o.RetryMax))
	if o.Open != nil {
		c.awaited = notify.New(notify.Options{Open: o.Open, Wake: c.queue.Add, Holds: c.holds, Clock: o.Clock})
	}
	if o.Changing {
		return c, nil
	}
	namespaces := o.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	return c, c.SetNamespaces(namespaces, nil)
}

// Run is Watch and Work together.
func (c *Controller) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { c.Watch(ctx) })
	return c.Work(ctx)
}

// Work runs Transactions until ctx is done, finishes the steps in flight and returns. It
// begins when Watch, which is to be called beside it, has listed them.
func (c *Controller) Work(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	defer c.queue.ShutDown()
	if c.options.Shards <= 1 {
		c.held.begin(0)
		defer c.held.end(0)
	}
	if !cache.WaitForCacheSync(ctx.Done(), c.Synced) {
		return nil
	}
	c.enqueueKnown()
	c.log.Info("watching Transactions", zap.Int("workers", c.options.Workers+c.options.Spare), zap.Strings("namespaces", c.options.Namespaces))
	if c.awaited != nil {
		all.Go(func() { c.awaited.Run(ctx) })
	}
	for range c.options.Workers + c.options.Spare {
		all.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	if !c.options.Retention.isAll() {
		all.Go(func() { c.retire(ctx) })
	}
	if c.options.Leftovers != nil {
		all.Go(func() { c.clearUp(ctx) })
	}
	if c.options.Resync > 0 {
		all.Go(func() { c.resyncs(ctx) })
	}
	<-ctx.Done()
	c.log.Info("stopping: the steps in flight are finished first")
	return nil
}

// enqueueKnown queues what was heard of before it was to be run here. What is heard from then on is
// queued at once.
func (c *Controller) enqueueKnown() {
	for _, each := range c.watches.all() {
		c.enqueueAll(each)
	}
}

// Synced reports whether every Transaction has been listed. Then it can be taken over from another
// process without listing them once more.
func (c *Controller) Synced() bool { return c.watches.haveSynced() }

// watched reports whether a Transaction exists, as far as the watch has told.
func (c *Controller) watched(name types.NamespacedName) bool {
	each := c.watches.at(name.Namespace)
	if each == nil {
		return false
	}
	_, exists, err := each.informer.GetStore().GetByKey(name.String())
	return err == nil && exists
}

// next runs one Transaction from the queue; false when the queue has shut down.
func (c *Controller) next(ctx context.Context) bool {
	name, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(name)
	stuck := false
	defer func() {
		for n := range c.line.done(name.Namespace, stuck) {
			c.queue.Add(wake(n))
		}
	}()
	if isWake(name) {
		return true
	}
	term := c.held.enter(c.shardOf(name))
	if term == nil {
		c.queue.Forget(name) // It is in a shard that was released since it was queued.
		return true
	}
	defer term.running.Done()
	from := c.watches.enter(name.Namespace)
	if from == nil {
		c.queue.Forget(name) // Its namespace has left since it was queued.
		return true
	}
	defer from.running.Done()
	if ctx.Err() != nil {
		return true
	}
	began := c.options.Clock.Now()
	result := c.run(ctx, term, from, name)
	stuck = result.Err != nil && !result.Progressed && c.options.Clock.Since(began) >= stuckTime
	c.resync.looked(name)
	told, within := c.tellOf(name, result, began)
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
	case told:
		c.queue.Forget(name)
		c.queue.AddAfter(name, within)
	case result.After > 0:
		c.queue.Forget(name)
		c.queue.AddAfter(name, result.After)
	default:
		c.queue.Forget(name)
	}
	return true
}

func (c *Controller) run(ctx context.Context, term *heldShard, from *watch, name types.NamespacedName) (result engine.Result) {
	log := c.log.With(identified(name)...)
	var t *api.Transaction
	defer func() {
		if p := recover(); p != nil {
			// One Transaction must not end what others rely on. spec.timeout ends it, if
			// nothing else does.
			if t != nil {
				c.engine.Distrust(t)
			}
			log.Error("a step panicked, which is a defect of janusd; trying again", zap.Any("panic", p), zap.Stack("stack"))
			result = engine.Result{Err: fmt.Errorf("a step of Transaction %s panicked: %v", name, p)}
		}
	}()
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
	log = log.With(versioned(t)...)
	if !c.selects(t) {
		log.Info("left to another janusd: its labels do not match the selector")
		c.forget(func(other types.NamespacedName) bool { return other == name })
		return engine.Result{}
	}
	if from.leaving.Load() && !plan.Begun(t.Finalizers, t.Status.Phase) {
		// Nothing new is begun there. What has ended may have something left.
		return c.engine.CleanUp(ctx, t)
	}
	log.Debug("running", zap.String("phase", string(t.Status.Phase)), zap.Int64("version", t.Status.Version))
	turn, end := c.turn(ctx, term, name.Namespace)
	defer end()
	result = c.engine.Run(turn, t)
	switch {
	case result.Err != nil:
		log.Warn("a step failed; trying again", zap.Error(result.Err), zap.Int("attempt", c.queue.NumRequeues(name)+1))
	case turn.Err() != nil && ctx.Err() == nil && !term.ended() && result.Idle():
		c.queue.Add(name) // It has made room for others, or has ended just then.
	}
	return result
}

// selects reports whether a Transaction is to be run here by its labels. The watch knows them, but
// may be behind.
func (c *Controller) selects(t *api.Transaction) bool {
	return c.options.Selector == nil || c.options.Selector.Matches(labels.Set(t.Labels))
}
