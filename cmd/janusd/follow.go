package main

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/controller"
	"janus.io/janus/engine/plan"
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

// begun asks whether a Transaction that was begun in a namespace is to be finished. It has the finalizer
// until the last write of its status, which may have failed: its phase tells, and is read of those alone that
// have no time of completion.
func (c *clients) begun(ctx context.Context, namespace string) (bool, error) {
	options := metav1.ListOptions{Limit: 500}
	for {
		list, err := c.metadata.Resource(api.Resource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			t := &list.Items[i]
			if plan.Begun(t.Finalizers, "") {
				return true, nil
			}
			if completed(t) {
				continue
			}
			if unended, err := c.midway(ctx, namespace, t.Name); unended || err != nil {
				return unended, err
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return false, nil
		}
	}
}

// completed reports whether a Transaction has a time of completion, as the owners of its fields tell: to list
// the status of all that have ended would cost far more.
func completed(t *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(t.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.FieldsV1 != nil && bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:completionTime"`))
	})
}

// midway reports whether the phase of a Transaction says that it was begun.
func (c *clients) midway(ctx context.Context, namespace, name string) (bool, error) {
	t, err := c.dynamic.Resource(api.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	phase, _, _ := unstructured.NestedString(t.Object, "status", "phase")
	return plan.Begun(t.GetFinalizers(), api.Phase(phase)), nil
}
