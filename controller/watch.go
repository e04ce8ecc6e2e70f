package controller

import (
	"cmp"
	"fmt"
	"iter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
)

// glance is what the informer keeps of a Transaction: what this package reads of it, so that
// many finished Transactions cost little memory.
type glance struct {
	metav1.ObjectMeta
	phase    api.Phase
	observed int64
	// completion is when it ended; zero if it has not.
	completion metav1.Time
	// ttl is how long it is to stay after its end; nil means for ever.
	ttl *time.Duration
	// stays says that it is not to go because there are others.
	stays bool
}

// trim cuts what the informer gets down to that.
func trim(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	phase, _, err := unstructured.NestedString(u.Object, "status", "phase")
	if err != nil {
		return nil, fmt.Errorf("read the phase of Transaction %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	g := &glance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
			Generation: u.GetGeneration(), DeletionTimestamp: u.GetDeletionTimestamp(),
		},
		phase: cmp.Or(api.Phase(phase), api.PhasePending),
		stays: mustStay(u),
	}
	g.observed, _, _ = unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	if text, found, _ := unstructured.NestedString(u.Object, "status", "completionTime"); found && g.completion.UnmarshalQueryParameter(text) != nil {
		g.completion = metav1.Time{} // It is looked at as one that has not said when it ended.
	}
	if seconds, found, _ := unstructured.NestedInt64(u.Object, "spec", "ttlSecondsAfterFinished"); found {
		g.ttl = ptr.To(time.Duration(seconds) * time.Second)
	}
	return g, nil
}

// handlers queue what has something to do. A worker follows its own status writes
// by itself, so an update counts only when somebody else is behind it: a new
// spec, a deletion, or the fail-safe resync, which changes nothing.
func (c *Controller) handlers() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.enqueue(obj) },
		UpdateFunc: func(before, after any) {
			if worthALook(before, after) {
				c.enqueue(after)
			}
		},
	}
}

func worthALook(before, after any) bool {
	b, ok1 := before.(*glance)
	a, ok2 := after.(*glance)
	if !ok1 || !ok2 {
		return true
	}
	return a.ResourceVersion == b.ResourceVersion || a.UID != b.UID || a.Generation != b.Generation ||
		(a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil)
}

func (c *Controller) enqueue(obj any) {
	g, ok := obj.(*glance)
	if !ok || !c.ours(nameOf(g)) {
		return
	}
	done := g.phase.Terminal() && g.phase != api.PhaseFailed && g.DeletionTimestamp == nil
	if done && g.Generation == g.observed && !c.engine.EndedLately(&g.completion) {
		if !g.completion.IsZero() && g.ttl != nil {
			c.queue.AddAfter(nameOf(g), c.engine.ExpiresIn(g.completion.Time, *g.ttl))
		}
		return
	}
	c.queue.Add(nameOf(g))
}

func nameOf(g *glance) types.NamespacedName {
	return types.NamespacedName{Namespace: g.Namespace, Name: g.Name}
}

// glances gives what the informers know, whichever replica runs it.
func (c *Controller) glances() iter.Seq[*glance] {
	return func(yield func(*glance) bool) {
		for _, informer := range c.informers {
			for _, obj := range informer.GetStore().List() {
				if g, ok := obj.(*glance); ok && !yield(g) {
					return
				}
			}
		}
	}
}

// Active counts the Transactions that have not ended and are run here, by phase, from
// what the informers know: it is right as soon as they have synced.
func (c *Controller) Active() map[api.Phase]int {
	counts := map[api.Phase]int{}
	for g := range c.glances() {
		if !g.phase.Terminal() && c.ours(nameOf(g)) {
			counts[g.phase]++
		}
	}
	return counts
}
