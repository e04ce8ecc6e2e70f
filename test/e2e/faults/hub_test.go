package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/test/harness"
)

// hub tells runs of their Transaction by one watch, in place of many reads.
type hub struct {
	mu    sync.Mutex
	known map[types.NamespacedName]known
	heard map[string]chan struct{} // by namespace; closed at the next event
}

// known is a Transaction as it was last seen; nil once it is gone.
type known struct {
	uid types.UID
	txn *api.Transaction
}

func newHub(ctx context.Context, client *harness.Client) *hub {
	h := &hub{known: map[types.NamespacedName]known{}, heard: map[string]chan struct{}{}}
	informer := dynamicinformer.NewFilteredDynamicInformer(client.Dynamic, api.Resource, "", 0, cache.Indexers{}, nil).Informer()
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { h.hear(obj, false) },
		UpdateFunc: func(_, obj any) { h.hear(obj, false) },
		DeleteFunc: func(obj any) { h.hear(obj, true) },
	})
	go informer.RunWithContext(ctx)
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	return h
}

func (h *hub) hear(obj any, gone bool) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	var t *api.Transaction
	if !gone {
		t = &api.Transaction{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, t); err != nil {
			return
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known[nameOf(u)] = known{u.GetUID(), t}
	if heard := h.heard[u.GetNamespace()]; heard != nil {
		close(heard)
		delete(h.heard, u.GetNamespace())
	}
}

// forget makes the hub ready for the next run in a namespace.
func (h *hub) forget(namespace string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.known, func(name types.NamespacedName, _ known) bool { return name.Namespace == namespace })
}

// silence is how long a Transaction that has not ended may do nothing. It covers every
// wait that the faults of a plan can cause, on a busy machine.
const silence = 40 * time.Second

// errEndless says that a Transaction has not come to its end.
var errEndless = errors.New("it has not ended")

func nameOf(u *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
}

// ended waits until a Transaction is gone, or has nothing more to do for ever.
func (h *hub) ended(ctx context.Context, name types.NamespacedName, uid types.UID, generation func(types.UID) int64, patience time.Duration) (*api.Transaction, error) {
	begin := time.Now()
	late := time.NewTimer(silence)
	defer late.Stop()
	for {
		h.mu.Lock()
		last := h.known[name]
		t := last.txn
		heard := h.heard[name.Namespace]
		if heard == nil {
			heard = make(chan struct{})
			h.heard[name.Namespace] = heard
		}
		h.mu.Unlock()
		if last.uid == uid && (t == nil || t.Generation >= generation(uid) && plan.Decide(t, plan.InFlight{}, time.Now(), harness.FastPolicy).Verb == plan.Nothing) {
			return t, nil
		}
		select {
		case <-heard:
			if time.Since(begin) < patience {
				late.Reset(silence)
			}
		case <-late.C:
			return t, fmt.Errorf("%w after %s; it is %s", errEndless, time.Since(begin).Round(time.Second), harness.Describe(t))
		case <-ctx.Done():
			return t, ctx.Err()
		}
	}
}
