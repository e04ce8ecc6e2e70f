package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/controller"
	"janus.io/janus/internal/target"
	"janus.io/janus/internal/version"
)

// requestTimeout bounds every request but watches. The API server is told and
// keeps to it, so that a request that was given up on cannot land much later.
const requestTimeout = 15 * time.Second

// clients are janusd's own, and the configurations to make others from.
type clients struct {
	config   *rest.Config // with the request timeout
	endless  *rest.Config // without it
	own      kubernetes.Interface
	election kubernetes.Interface // with a pace of its own
	dynamic  dynamic.Interface
	metadata metadata.Interface
	watcher  dynamic.Interface  // without the timeout
	watch    cache.Getter       // without it too, of Transactions
	listener metadata.Interface // without it too
	user     string             // who the API server takes us for
}

// connect makes the clients and finds out who we are.
func connect(ctx context.Context, o options) (*clients, error) {
	config, err := load(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	// Without --kube-api-qps the API server's priority and fairness decide how fast we may go.
	config.QPS, config.Burst = -1, 0
	// To compress large answers takes CPU on both sides, and the API server is near. The controller manager of
	// Kubernetes has none compressed either.
	config.DisableCompression = true
	config.UserAgent = "janusd/" + version.Version
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(target.Transport)
	unpaced := rest.CopyConfig(config)
	unpaced.Timeout = requestTimeout
	config.RateLimiter = o.pace() // It is the same for all clients that are made of it.
	endless := rest.CopyConfig(config)
	config.Timeout = requestTimeout

	c := &clients{config: config, endless: endless}
	if c.election, err = kubernetes.NewForConfig(unpaced); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if c.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if c.listener, err = metadata.NewForConfig(endless); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if c.watcher, err = dynamic.NewForConfig(endless); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if c.watch, err = controller.NewWatcher(endless); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if c.own, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return c, c.identify(ctx)
}

// pace is what all requests of this janusd together are held to, nil for none. A janusd that waited for
// its turn to renew the Lease by which it leads would lose it, so that is not counted.
func (o options) pace() flowcontrol.RateLimiter {
	if o.qps == 0 {
		return nil
	}
	burst := o.burst
	if burst == 0 {
		burst = int(math.Ceil(2 * float64(o.qps)))
	}
	return flowcontrol.NewTokenBucketRateLimiter(o.qps, burst)
}

func load(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err == nil {
			return config, nil
		}
		if !errors.Is(err, rest.ErrNotInCluster) {
			return nil, fmt.Errorf("configuration of the Pod: %w", err)
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no API server to talk to: pass --kubeconfig, set $KUBECONFIG, or run in a Pod")
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return config, nil
}

// identify asks the API server for our user name and whether it serves
// Transactions.
func (c *clients) identify(ctx context.Context) error {
	review, err := c.own.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authnv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask %s who we are: %w", c.config.Host, err)
	}
	c.user = review.Status.UserInfo.Username
	return served(c.own.Discovery())
}

// served says which version of Transactions the API server lacks: janusd reads them in one, and refers
// to them in the other.
func served(d discovery.DiscoveryInterface) error {
	for _, version := range api.Versions {
		resources, err := d.ServerResourcesForGroupVersion(version.String())
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("ask what the API server serves: %w", err)
		}
		if resources == nil || !slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool {
			return r.Name == api.Resource.Resource
		}) {
			return fmt.Errorf("the API server serves no Transactions of %s: install the CRD with 'kubectl apply -k deploy/crd'", version)
		}
	}
	return nil
}

// ownNamespace makes sure that our namespace is there: locks would fail without it.
// It tells whether it had to be created, which takes a right that janusd does not
// have in a Pod.
func (c *clients) ownNamespace(ctx context.Context, name string) (created bool, err error) {
	namespaces := c.own.CoreV1().Namespaces()
	_, err = namespaces.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return false, nil
	}
	if apierrors.IsForbidden(err) {
		// Its own is the only one that a deployed janusd may read, whether others exist or not.
		return false, fmt.Errorf("janusd may not read namespace %s, in which it would keep the locks of cluster-scoped targets: "+
			"name the one that janusd is installed in with --namespace: %w", name, err)
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("read namespace %s: %w", name, err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "janus"},
	}}
	_, err = namespaces.Create(ctx, namespace, metav1.CreateOptions{})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return err == nil, nil
	case apierrors.IsForbidden(err):
		return false, fmt.Errorf("namespace %s, in which janusd keeps the locks of cluster-scoped targets, does not exist, "+
			"and janusd may not create it: create it or name another with --namespace", name)
	default:
		return false, fmt.Errorf("create namespace %s: %w", name, err)
	}
}
