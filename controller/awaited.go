package controller

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/internal/notify"
)

// tellOf has a Transaction queued when something happens to what it waits for, and reports whether
// that works, and when it is to be queued all the same. It has looked at that since began.
func (c *Controller) tellOf(name types.NamespacedName, result engine.Result, began time.Time) (told bool, within time.Duration) {
	if c.awaited == nil {
		return false, 0
	}
	if result.Err != nil {
		c.awaited.Drop(name)
		return false, 0
	}
	told, soon := c.awaited.Set(name, result.Account, result.Awaited, began)
	if soon > 0 {
		return told, min(soon, result.Told)
	}
	return told, result.Told
}

// holds says for how long a Transaction keeps its locks.
func (c *Controller) holds(name types.NamespacedName) notify.Hold {
	each := c.watches.at(name.Namespace)
	if each == nil {
		return notify.HoldUnknown
	}
	obj, exists, err := each.informer.GetStore().GetByKey(name.String())
	g, ok := obj.(*summary)
	switch {
	case err != nil || !exists || !ok || g.phase.Terminal():
		return notify.HoldUnknown
	case slices.Contains([]api.Phase{"", api.PhasePending, api.PhasePlanned, api.PhasePreparing}, g.phase):
		return notify.HoldTentative
	default:
		return notify.HoldUntilEnd
	}
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
