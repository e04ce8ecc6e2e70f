package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"janus.io/janus/controller"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/notify"
	"janus.io/janus/internal/openapi"
	"janus.io/janus/internal/settings"
	"janus.io/janus/internal/target"
	"janus.io/janus/internal/version"
	"janus.io/janus/internal/wiring"
	"janus.io/janus/internal/wiring/leftovers"
	"janus.io/janus/lockmgr"
	"janus.io/janus/revision"
	"janus.io/janus/snapshot"
)

func run(ctx context.Context, o options) error {
	log, err := newLogger(o)
	if err != nil {
		return err
	}
	defer func() { _ = log.Sync() }()
	bridge(log)
	c, err := connect(ctx, o)
	if err != nil {
		return err
	}
	if err := c.begin(ctx, o, log); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	metrics, err := controller.NewMetrics(registry, clock.RealClock{})
	if err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	recorder, lastEvents, err := c.announce(ctx, log.Named("events"))
	if err != nil {
		return err
	}
	defer lastEvents()
	record := controller.NewRecorder(recorder, metrics, clock.RealClock{}, log.Named("controller"))
	traces, flush, err := trace(ctx, o, log)
	if err != nil {
		return err
	}
	defer flush()
	stop, err := c.enforceLocks(ctx, o, log.Named("enforced"))
	if err != nil {
		return err
	}
	defer stop()
	kinds, err := o.sensitiveKinds()
	if err != nil {
		return err
	}
	go c.tell(ctx, o.namespace, settings.Settings{SensitiveKinds: kinds, Locks: o.locks}, log)
	f, err := assemble(c, o, kinds, observers{metrics, record, traces}, log)
	if err != nil {
		return err
	}
	metrics.CountActive(f.ctl.Active)
	metrics.CountStanding(f.ctl.AwaitingApproval)
	metrics.CountUnended(f.ctl.Unended)
	metrics.CountShards(f.ctl.Shards)

	packages, err := c.packages(o, registry, recorder, log.Named("packages"))
	if err != nil {
		return err
	}
	servers, err := serve(ctx, o, c, registry, f.ctl.Synced, log)
	if err != nil {
		return err
	}
	defer servers.stop(ctx)
	stopFollowing := f.follow(ctx)
	defer stopFollowing()
	return work(ctx, c, o, worker{Controller: f.ctl, packages: packages}, log)
}

// begin makes sure of janusd's own namespace, and says in the log who janusd is.
func (c *clients) begin(ctx context.Context, o options, log *zap.Logger) error {
	created, err := c.ownNamespace(ctx, o.namespace)
	if err != nil {
		return err
	}
	if created {
		log.Info("created janusd's own namespace", zap.String("namespace", o.namespace))
	}
	log.Info("janusd starts", zap.String("version", version.Version), zap.String("server", c.config.Host),
		zap.String("user", c.user), zap.String("namespace", o.namespace), zap.String("memoryLimit", memoryLimit()))
	return nil
}

// work runs the Transactions that are this replica's. It watches them before it contends for a
// Lease, and until what was in flight has been finished: anyone who takes over knows them all.
func work(ctx context.Context, c *clients, o options, ctl worker, log *zap.Logger) error {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watched sync.WaitGroup
	defer watched.Wait()
	defer stop()
	watched.Go(func() { ctl.Watch(watching) })
	if o.leaderElect && !cache.WaitForCacheSync(ctx.Done(), ctl.Synced) {
		return nil
	}
	switch {
	case !o.leaderElect:
		return ctl.Work(ctx)
	case o.shards == 1:
		return lead(ctx, c, o, ctl, log)
	default:
		return share(ctx, c, o, ctl, log)
	}
}

// observers are told what the engine does.
type observers struct {
	metrics  *controller.Metrics
	recorder *controller.Recorder
	traces   *controller.Traces // nil for none
}

// watch has the observers told of what goes through the ports.
func (o observers) watch(ports engine.Ports) engine.Ports {
	ports.Journal = o.metrics.Time(ports.Journal)
	ports.Planner = o.metrics.CountPrepared(ports.Planner)
	ports.Changes = o.metrics.Count(ports.Changes)
	ports.Recorder = o.recorder
	if o.traces != nil {
		ports.Changes = o.traces.Changes(ports.Changes)
		ports.Recorder = o.traces.Recorder(ports.Recorder)
	}
	return ports
}

// assemble builds the engine on its real parts and the controller on the engine.
func assemble(c *clients, o options, sensitive []schema.GroupKind, observers observers, log *zap.Logger) (f *runner, err error) {
	resolver := target.Discover(c.own.Discovery())
	accounts := target.NewClients(c.config, c.own.CoreV1(), c.user).Trusting(target.Trust, clock.RealClock{})
	if o.enforce {
		accounts = accounts.Marking()
	}
	store := snapshot.NewStore(c.own, sensitive)
	ports := wiring.Ports(wiring.Parts{
		Own:       c.dynamic,
		Resolver:  resolver,
		Clients:   accounts,
		Store:     store,
		Revisions: revision.NewStore(c.own),
		Locks: lockmgr.New(c.leases(o), lockmgr.Options{
			Namespace: o.namespace, Observe: observers.metrics.LockOperation,
		}),
		Types:       openapi.New(c.own.Discovery().OpenAPIV3(), clock.RealClock{}, log.Named("openapi"), openapi.Patience),
		ImagesLimit: int64(o.imagesLimit),
	})
	if o.enforce {
		ports.Locks = c.enforced(ports.Locks)
	}
	policy := plan.DefaultPolicy
	policy.RevisionHistoryLimit = int32(o.historyLimit) //nolint:gosec // at most maxHistory
	e := engine.New(observers.watch(ports), clock.RealClock{}, policy)
	f = &runner{}
	f.ctl, err = controller.New(e, wiring.NewJournal(c.dynamic), c.watch, log.Named("controller"), controller.Options{
		Namespaces: o.watch.names, Changing: o.watch.changes(), Begun: c.begun, Left: f.left,
		Selector: o.selector, Workers: o.workers, Spare: max(1, o.workers/4), Shards: o.shards, Resync: o.resync,
		Open:      notify.Opener(target.NewClients(c.endless, c.own.CoreV1(), c.user), resolver),
		RetryBase: o.retryBase, RetryMax: o.retryMax,
		Retention: controller.Retention{Completed: limit(o.keepCompleted), Failed: limit(o.keepFailed)}, Leftovers: c.finder(o, store),
	})
	if err != nil {
		return nil, err
	}
	if o.watch.changes() {
		f.begin(c, o, log.Named("namespaces"))
	}
	return f, nil
}

// finder finds out what Transactions have left, where janusd may list the Leases of all namespaces; nil
// where each is to be looked at. It does not look into the tables of enforced locks.
func (c *clients) finder(o options, store *snapshot.Store) controller.Leftovers {
	if o.enforce || len(o.watch.names) > 0 || o.watch.changes() {
		return nil
	}
	return leftovers.NewFinder(c.own.CoordinationV1(), store)
}

// limit is how many are kept; nil for all.
func limit(n int) *int {
	if n == keepAll {
		return nil
	}
	return &n
}
