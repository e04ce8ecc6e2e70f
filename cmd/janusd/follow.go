package main

import (
	"context"
	"slices"
	"sync"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/controller"
	"janus.io/janus/internal/namespaces"
)

// namespacesRecord is the name of the ConfigMap that has the namespaces in which Transactions may
// have been begun, where they change.
const namespacesRecord = "janusd-namespaces"

// runner is the controller, and what tells it which namespaces there are if they change.
type runner struct {
	ctl      *controller.Controller
	follower *namespaces.Follower
	source   namespaces.Source
}

func (f *runner) begin(c *clients, o options, log *zap.Logger) {
	f.follower = namespaces.New(namespaces.Options{
		Client: c.own, Namespace: o.namespace, Record: o.inGroup(namespacesRecord),
		Set: f.ctl.SetNamespaces, Begun: c.begun, Clock: clock.RealClock{}, Log: log,
	})
	f.source = namespaces.File{Path: o.watch.file, Clock: clock.RealClock{}, Log: log}
	if o.watch.selector != nil {
		f.source = namespaces.Labelled{Client: c.listener, Selector: o.watch.selector}
	}
}

// left is told by the controller of a namespace that it does not watch any more.
func (f *runner) left(namespace string) {
	if f.follower != nil {
		f.follower.Left(namespace)
	}
}

// follow follows the namespaces, if they change, until it is stopped.
func (f *runner) follow(ctx context.Context) (stop func()) {
	if f.follower == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { f.follower.Run(ctx, f.source) })
	return func() { cancel(); done.Wait() }
}

// begun asks whether a Transaction that was begun in a namespace is to be finished: it has the
// finalizer until then.
func (c *clients) begun(ctx context.Context, namespace string) (bool, error) {
	options := metav1.ListOptions{Limit: 500}
	for {
		list, err := c.metadata.Resource(api.Resource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if slices.Contains(list.Items[i].Finalizers, api.Finalizer) {
				return true, nil
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return false, nil
		}
	}
}
