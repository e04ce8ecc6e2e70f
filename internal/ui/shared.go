package ui

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	api "janus.io/janus/api/v1alpha1"
)

const (
	// readsAtOnce bounds what all who look ask of the API server at the same time: anyone who
	// serves them may have other things to ask of it.
	readsAtOnce = 4
	// reachableEvery is how often it is checked whether the API server still answers,
	// while there are followers. A watch that it has left behind looks like one with no
	// news.
	reachableEvery = 10 * time.Second
	// firstListWithin is how long who looks waits for the first list, which takes the API
	// server about a second.
	firstListWithin = 5 * time.Second
)

// Shared is a Reader for many who look at the same time. It watches Transactions once for all
// of them, and keeps of each what lists and locks are made of. One that is looked at is read.
type Shared struct {
	cluster    *Cluster
	namespaces []string // none for all
	informers  []cache.SharedIndexInformer
	synced     []cache.InformerSynced
	reads      chan struct{}

	mu        sync.Mutex
	known     map[string]*api.Transaction // by namespace/name
	followers map[*follower]struct{}
	ended     bool
}

var _ Reader = &Shared{}

// NewShared makes a Reader of the Transactions of some namespaces, each named once; of all, if
// there are none. watcher is a client without a request timeout.
func NewShared(watcher, dynamic dynamic.Interface, kube kubernetes.Interface, namespaces []string) (*Shared, error) {
	s := &Shared{
		cluster: NewCluster(dynamic, kube, metav1.NamespaceAll), namespaces: namespaces, reads: make(chan struct{}, readsAtOnce),
		known: map[string]*api.Transaction{}, followers: map[*follower]struct{}{},
	}
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		informer := dynamicinformer.NewFilteredDynamicInformer(watcher, api.Resource, namespace, 0, cache.Indexers{}, nil).Informer()
		if err := informer.SetTransform(trim); err != nil {
			return nil, fmt.Errorf("watch Transactions in %q: %w", namespace, err)
		}
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { s.hear(watch.Added, obj) },
			UpdateFunc: func(_, obj any) { s.hear(watch.Modified, obj) },
			DeleteFunc: func(obj any) { s.hear(watch.Deleted, obj) },
		})
		if err != nil {
			return nil, fmt.Errorf("watch Transactions in %q: %w", namespace, err)
		}
		s.informers = append(s.informers, informer)
		s.synced = append(s.synced, registration.HasSynced)
	}
	return s, nil
}

// Run watches until ctx is done, and ends what everybody follows then.
func (s *Shared) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, informer := range s.informers {
		all.Go(func() { informer.RunWithContext(ctx) })
	}
	look := time.NewTicker(reachableEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			s.end(nil)
			return
		case <-look.C:
			s.lookAfter(ctx)
		}
	}
}

// lookAfter tells those who follow if no news can come.
func (s *Shared) lookAfter(ctx context.Context) {
	s.mu.Lock()
	followed := len(s.followers) > 0
	s.mu.Unlock()
	if !followed {
		return
	}
	if err := s.reachable(ctx); err != nil && ctx.Err() == nil {
		s.end(err)
	}
}

// reachable asks the API server for as little as there is.
func (s *Shared) reachable(ctx context.Context) error {
	namespace := metav1.NamespaceAll
	if len(s.namespaces) > 0 {
		namespace = s.namespaces[0]
	}
	_, err := s.cluster.dynamic.Resource(api.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("list Transactions: %w", err)
	}
	return nil
}

// Transactions implements Reader.
func (s *Shared) Transactions(ctx context.Context) ([]*api.Transaction, error) {
	if err := s.listed(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list()
}

// listed waits for the first list.
func (s *Shared) listed(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, firstListWithin)
	defer cancel()
	if cache.WaitForCacheSync(waiting.Done(), s.synced...) {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("wait until the Transactions are listed: %w", ctx.Err())
	}
	return apierrors.NewServiceUnavailable("the Transactions have not been listed yet")
}

// list needs the mutex, and listed first.
func (s *Shared) list() ([]*api.Transaction, error) {
	if s.ended {
		return nil, apierrors.NewServiceUnavailable("the page is not served any more")
	}
	found := make([]*api.Transaction, 0, len(s.known))
	for _, t := range s.known {
		found = append(found, t)
	}
	slices.SortFunc(found, byAge)
	return found, nil
}

// Follow implements Reader.
func (s *Shared) Follow(ctx context.Context) ([]*api.Transaction, watch.Interface, error) {
	// What is kept may be old, and anyone who begins to look is to know.
	if err := s.reachable(ctx); err != nil {
		return nil, nil, err
	}
	if err := s.listed(ctx); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.list()
	if err != nil {
		return nil, nil, err
	}
	return found, s.follow(), nil
}

// Transaction implements Reader.
func (s *Shared) Transaction(ctx context.Context, namespace, name string) (*api.Transaction, error) {
	if len(s.namespaces) > 0 && !slices.Contains(s.namespaces, namespace) {
		return nil, fmt.Errorf("read Transaction %s/%s: its namespace is not among those that are shown: %w", namespace, name,
			apierrors.NewNotFound(api.Resource.GroupResource(), name))
	}
	return bounded(ctx, s, func() (*api.Transaction, error) { return s.cluster.Transaction(ctx, namespace, name) })
}

// Leases implements Reader.
func (s *Shared) Leases(ctx context.Context, namespace string) ([]coordinationv1.Lease, error) {
	return bounded(ctx, s, func() ([]coordinationv1.Lease, error) { return s.cluster.Leases(ctx, namespace) })
}

// Events implements Reader.
func (s *Shared) Events(ctx context.Context, t *api.Transaction) ([]corev1.Event, error) {
	return bounded(ctx, s, func() ([]corev1.Event, error) { return s.cluster.Events(ctx, t) })
}

// Bounded is a History that is among what all who look ask for at the same time.
func (s *Shared) Bounded(h History) History { return boundedHistory{s, h} }

type boundedHistory struct {
	shared *Shared
	of     History
}

// Revisions implements History.
func (b boundedHistory) Revisions(ctx context.Context, namespace string) ([]Revision, error) {
	return bounded(ctx, b.shared, func() ([]Revision, error) { return b.of.Revisions(ctx, namespace) })
}

// bounded reads when not too many others do.
func bounded[T any](ctx context.Context, s *Shared, read func() (T, error)) (T, error) {
	select {
	case s.reads <- struct{}{}:
		defer func() { <-s.reads }()
		return read()
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
