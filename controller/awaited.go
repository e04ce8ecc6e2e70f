package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
)

// tellOf has a Transaction queued when something happens to what it waits for, and reports whether
// that works. It has looked at that since began.
func (c *Controller) tellOf(name types.NamespacedName, result engine.Result, began time.Time) bool {
	if c.awaited == nil {
		return false
	}
	if result.Err != nil {
		c.awaited.Drop(name)
		return false
	}
	return c.awaited.Set(name, result.Account, result.Awaited, began)
}

// holds reports whether a Transaction keeps its locks until it ends. One that hasn't taken all of them yet
// may release some.
func (c *Controller) holds(name types.NamespacedName) bool {
	each := c.watches.at(name.Namespace)
	if each == nil {
		return false
	}
	obj, exists, err := each.informer.GetStore().GetByKey(name.String())
	g, ok := obj.(*summary)
	return err == nil && exists && ok && !g.phase.Terminal() && g.phase != api.PhasePending && g.phase != api.PhasePlanned
}

// heardOf tells those who wait for its locks when a Transaction has ended.
func (c *Controller) heardOf(obj any) {
	if c.awaited == nil {
		return
	}
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
		if name, err := cache.ParseObjectName(gone.Key); obj == nil && err == nil {
			c.awaited.Ended(types.NamespacedName{Namespace: name.Namespace, Name: name.Name})
		}
	}
	if g, ok := obj.(*summary); ok {
		c.awaited.Ended(g.name)
	}
}

// forget drops what is known of some Transactions, which this process does not run any more.
func (c *Controller) forget(these func(types.NamespacedName) bool) {
	c.suspects.forget(these)
	c.engine.Forget(these)
	if c.awaited != nil {
		c.awaited.DropAll(these)
	}
}
