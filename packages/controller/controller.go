package controller

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	txn "janus.io/janus/api/v1alpha1"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/internal/registries"
	"janus.io/janus/packages/controller/progress"
)

// Options are what a Controller works with.
type Options struct {
	// Own is a client with the rights of janusd, and Watcher one without a request timeout.
	Own, Watcher dynamic.Interface
	Leases       coordinationclient.LeasesGetter
	Discovery    discovery.ServerResourcesInterface
	// Act returns a client that acts as a ServiceAccount.
	Act func(ctx context.Context, account types.NamespacedName) (dynamic.Interface, error)
	// Namespace is that of janusd, with the Lease.
	Namespace string
	// Crossplane is the namespace of Crossplane.
	Crossplane string
	// Serves reports whether the Transactions of a namespace are run; nil for all.
	Serves func(namespace string) bool
	// Selector is of the labels of the PackageTransactions that are run; nil for all.
	Selector labels.Selector
	// HistoryLimit is how many that have ended well are kept, and three times as many that have
	// not; 0 for all.
	HistoryLimit int
	// Policy is how long to wait; the zero value for the default.
	Policy progress.Policy
	// Patience is how long registries are waited for; the zero value for the default.
	Patience registries.Patience
	// PackageTimeout and Timeout are how long one package and all of them may take; empty for
	// five minutes and half an hour.
	PackageTimeout, Timeout txn.Duration
	// CheckTimeout is how long the checks of one attempt may take; zero for ten minutes.
	CheckTimeout time.Duration
	// Served is how often it checks whether there are PackageTransactions at all; zero for half a
	// minute.
	Served time.Duration
	// Observer may be nil.
	Observer Observer
	Clock    clock.Clock
	Log      *zap.Logger
}

func (o Options) withDefaults() Options {
	o.Policy = cmp.Or(o.Policy, progress.DefaultPolicy)
	o.Patience = cmp.Or(o.Patience, registries.DefaultPatience)
	o.PackageTimeout = cmp.Or(o.PackageTimeout, "5m0s")
	o.Timeout = cmp.Or(o.Timeout, "30m0s")
	o.CheckTimeout = cmp.Or(o.CheckTimeout, 10*time.Minute)
	o.Served = cmp.Or(o.Served, 30*time.Second)
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	return o
}

// Controller runs PackageTransactions.
type Controller struct {
	Options
	lock  lock
	store store
	// seen is what this process has told of those that there are, by uid.
	seen map[types.UID]sight
	// check is checked, but in tests of what is around it.
	check func(ctx context.Context, p *api.PackageTransaction) (*txn.Transaction, error)
}

// New makes a Controller.
func New(o Options) *Controller {
	o = o.withDefaults()
	c := &Controller{
		Options: o,
		lock:    lock{leases: o.Leases.Leases(o.Namespace), namespace: o.Namespace, clock: o.Clock},
		store:   store{own: o.Own},
		seen:    map[types.UID]sight{},
	}
	c.check = c.checked
	return c
}

// Run runs PackageTransactions until ctx is done, whenever the API server serves them.
func (c *Controller) Run(ctx context.Context) {
	for ctx.Err() == nil {
		served, err := c.served()
		switch {
		case err != nil:
			c.Log.Warn("looking whether there are PackageTransactions failed; trying again", zap.Error(err))
		case served:
			c.Log.Info("watching PackageTransactions")
			c.work(ctx)
		}
		c.wait(ctx, nil, c.Served)
	}
}

func (c *Controller) served() (bool, error) {
	_, err := c.Discovery.ServerResourcesForGroupVersion(api.GroupVersion.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// wait waits until it is woken, or some time is over.
func (c *Controller) wait(ctx context.Context, woken <-chan struct{}, after time.Duration) {
	timer := c.Clock.NewTimer(after)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-woken:
	case <-timer.C():
	}
}

// idle is after how long to look although nothing was heard.
const idle = time.Minute

// work runs PackageTransactions until ctx is done or they are served no more.
func (c *Controller) work(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	woken := make(chan struct{}, 1)
	wake := func(any) {
		select {
		case woken <- struct{}{}:
		default:
		}
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(c.Watcher, api.Resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		switch {
		case apierrors.IsNotFound(err):
			c.Log.Info("PackageTransactions are served no more")
			stop()
		case apierrors.IsForbidden(err):
			c.Log.Warn("janusd may not watch PackageTransactions: install deploy/packages; trying again", zap.Error(err))
			stop()
		default:
			cache.DefaultWatchErrorHandler(ctx, r, err)
		}
	})
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, now any) { wake(now) }, DeleteFunc: wake}); err != nil {
		c.Log.Error("watching PackageTransactions failed", zap.Error(err))
		return
	}
	done := make(chan struct{})
	defer func() { stop(); <-done }()
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return
	}
	defer c.Observer.Looked(nil)
	failures := 0
	for ctx.Err() == nil {
		after, err := c.pass(ctx, informer.GetStore())
		if err == nil || ctx.Err() != nil {
			failures = 0
			c.wait(ctx, woken, after)
			continue
		}
		c.Log.Warn("a step of a PackageTransaction failed; trying again", zap.Error(err))
		c.wait(ctx, nil, min(c.Policy.RetryMax, c.Policy.Look<<min(failures, 10)))
		failures++
	}
}

// known are the PackageTransactions that are run here, as far as the watch has told, the oldest
// first.
func (c *Controller) known(of cache.Store) ([]*api.PackageTransaction, error) {
	var out []*api.PackageTransaction
	for _, obj := range of.List() {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		p, err := decoded(u)
		if err != nil {
			return nil, err
		}
		if c.runs(p) {
			out = append(out, p)
		}
	}
	sortByAge(out)
	return out, nil
}

// runs reports whether a PackageTransaction is run here.
func (c *Controller) runs(p *api.PackageTransaction) bool {
	return (c.Serves == nil || c.Serves(p.Spec.ServiceAccountRef.Namespace)) && (c.Selector == nil || c.Selector.Matches(labels.Set(p.Labels)))
}

func describe(p *api.PackageTransaction) string { return fmt.Sprintf("PackageTransaction %s", p.Name) }
