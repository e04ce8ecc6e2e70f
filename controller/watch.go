package controller

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
)

// trim cuts what the informer keeps down to what this package reads from it, so
// that many finished Transactions cost little memory.
func trim(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	phase, _, err := unstructured.NestedString(u.Object, "status", "phase")
	if err != nil {
		return nil, fmt.Errorf("read the phase of Transaction %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	status := map[string]any{"phase": phase}
	if completion, found, _ := unstructured.NestedString(u.Object, "status", "completionTime"); found {
		status["completionTime"] = completion
	}
	if observed, found, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); found {
		status["observedGeneration"] = observed
	}
	if mustStay(u) {
		status["stays"] = true
	}
	small := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	if ttl, found, _ := unstructured.NestedInt64(u.Object, "spec", "ttlSecondsAfterFinished"); found {
		small.Object["spec"] = map[string]any{"ttlSecondsAfterFinished": ttl}
	}
	small.SetGroupVersionKind(u.GroupVersionKind())
	small.SetName(u.GetName())
	small.SetNamespace(u.GetNamespace())
	small.SetUID(u.GetUID())
	small.SetResourceVersion(u.GetResourceVersion())
	small.SetGeneration(u.GetGeneration())
	small.SetDeletionTimestamp(u.GetDeletionTimestamp())
	return small, nil
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
	b, err1 := meta.Accessor(before)
	a, err2 := meta.Accessor(after)
	if err1 != nil || err2 != nil {
		return true
	}
	return a.GetResourceVersion() == b.GetResourceVersion() ||
		a.GetUID() != b.GetUID() ||
		a.GetGeneration() != b.GetGeneration() ||
		(a.GetDeletionTimestamp() == nil) != (b.GetDeletionTimestamp() == nil)
}

func (c *Controller) enqueue(obj any) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	name := types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
	if !c.ours(name) {
		return
	}
	phase := phaseOf(obj)
	done := phase.Terminal() && phase != api.PhaseFailed && m.GetDeletionTimestamp() == nil
	if done && m.GetGeneration() == observedOf(obj) && !c.engine.EndedLately(completionOf(obj)) {
		if completion, ttl := completionOf(obj), ttlOf(obj); completion != nil && ttl != nil {
			c.queue.AddAfter(name, c.engine.ExpiresIn(completion.Time, *ttl))
		}
		return
	}
	c.queue.Add(name)
}

// ttlOf is how long a Transaction is to stay after its end; nil means for ever.
func ttlOf(obj any) *time.Duration {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	seconds, found, _ := unstructured.NestedInt64(u.Object, "spec", "ttlSecondsAfterFinished")
	if !found {
		return nil
	}
	return ptr.To(time.Duration(seconds) * time.Second)
}

func observedOf(obj any) int64 {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return 0
	}
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	return observed
}

func completionOf(obj any) *metav1.Time {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	text, _, _ := unstructured.NestedString(u.Object, "status", "completionTime")
	var completion metav1.Time
	if completion.UnmarshalQueryParameter(text) != nil || completion.IsZero() {
		return nil
	}
	return &completion
}

func phaseOf(obj any) api.Phase {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return ""
	}
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	if phase == "" {
		return api.PhasePending
	}
	return api.Phase(phase)
}

// Active counts the Transactions that have not ended and are run here, by phase, from
// what the informers know: it is right as soon as they have synced.
func (c *Controller) Active() map[api.Phase]int {
	counts := map[api.Phase]int{}
	for _, informer := range c.informers {
		for _, obj := range informer.GetStore().List() {
			m, err := meta.Accessor(obj)
			if err != nil || !c.ours(types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}) {
				continue
			}
			if phase := phaseOf(obj); !phase.Terminal() {
				counts[phase]++
			}
		}
	}
	return counts
}
