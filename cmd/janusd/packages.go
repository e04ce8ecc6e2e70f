package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"janus.io/janus/controller"
	"janus.io/janus/internal/target"
	packagecontroller "janus.io/janus/packages/controller"
)

// worker runs Transactions, and beside them PackageTransactions, one replica alone.
type worker struct {
	*controller.Controller
	packages *packagecontroller.Controller // nil for none
}

// Work runs both until ctx is done.
func (w worker) Work(ctx context.Context) error {
	defer w.beside(ctx)()
	return w.Controller.Work(ctx)
}

// Serve runs the Transactions of a shard. PackageTransactions are run by who has the first.
func (w worker) Serve(ctx context.Context, number int) {
	if number == 0 {
		defer w.beside(ctx)()
	}
	w.Controller.Serve(ctx, number)
}

// beside runs PackageTransactions until ctx is done. The function that it returns waits until
// they are not run any more.
func (w worker) beside(ctx context.Context) (wait func()) {
	var running sync.WaitGroup
	if w.packages != nil {
		running.Go(func() { w.packages.Run(ctx) })
	}
	return running.Wait
}

// packages makes the controller of PackageTransactions. Where the namespaces whose Transactions
// are run change there is none: what it has made would stand still if its namespace left.
// The metrics are registered all the same: alerts rely on them.
func (c *clients) packages(o options, registry prometheus.Registerer, recorder events.EventRecorder, log *zap.Logger) (*packagecontroller.Controller, error) {
	metrics, err := packagecontroller.NewMetrics(registry, clock.RealClock{})
	if err != nil {
		return nil, fmt.Errorf("register the metrics of PackageTransactions: %w", err)
	}
	if o.watch.changes() {
		return nil, nil
	}
	accounts := target.NewClients(c.config, c.own.CoreV1(), c.user)
	if o.enforce {
		accounts = accounts.Marking()
	}
	return packagecontroller.New(packagecontroller.Options{
		Own: c.dynamic, Watcher: c.watcher, Leases: c.own.CoordinationV1(), Discovery: c.own.Discovery(),
		Act: func(ctx context.Context, account types.NamespacedName) (dynamic.Interface, error) {
			id, err := accounts.As(ctx, account)
			if err != nil {
				return nil, err
			}
			return id.Dynamic, nil
		},
		Namespace: o.namespace, Crossplane: o.crossplane, Selector: o.selector, HistoryLimit: o.packageHistoryLimit,
		Serves: func(namespace string) bool {
			return len(o.watch.names) == 0 || slices.Contains(o.watch.names, namespace)
		},
		Observer: packagecontroller.NewRecorder(recorder, metrics, log), Clock: clock.RealClock{}, Log: log,
	}), nil
}
