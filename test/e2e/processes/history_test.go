package processes

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/leasetable"
)

// history is what an administrator's watches have seen, from the start. One etcd
// numbers all versions of all objects, so they can be put in one order.
type history struct {
	w *world

	mu      sync.Mutex
	current map[string]string // of a stream and an object, its resourceVersion
	known   map[string]*unstructured.Unstructured
	targets map[string][]seen
	hots    map[string][]seen
	txns    map[string][]checkpoint
	leases  map[string][]tenure
	tabled  map[string]map[string]coordinationv1.Lease // what the table of a namespace had last, by name
}

// at is when a version was stored. gap says that versions between the one before and
// this one may have been missed, because the API server had forgotten them.
type at struct {
	revision uint64
	gap      bool
}

// seen is a version of a target; its state is empty where it is gone.
type seen struct {
	at
	uid        types.UID
	generation int64
	state      string
}

// checkpoint is a version of a Transaction.
type checkpoint struct {
	at
	gone   bool
	uid    types.UID
	status api.TransactionStatus
}

// tenure is a version of a Lease.
type tenure struct {
	at
	gone bool
	spec coordinationv1.LeaseSpec
}

var leases = coordinationv1.SchemeGroupVersion.WithResource("leases")

// watch begins to watch, and returns when everything that is there is known.
func (w *world) watch() *history {
	h := &history{
		w: w, current: map[string]string{}, known: map[string]*unstructured.Unstructured{}, targets: map[string][]seen{},
		hots: map[string][]seen{}, txns: map[string][]checkpoint{}, leases: map[string][]tenure{},
		tabled: map[string]map[string]coordinationv1.Lease{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	w.t.Cleanup(func() { cancel(); all.Wait() })
	var listed sync.WaitGroup
	for _, s := range h.streams() {
		listed.Add(1)
		all.Go(func() { s.follow(ctx, sync.OnceFunc(listed.Done)) })
	}
	listed.Wait()
	return h
}

// stream is a watch of one resource in one namespace.
type stream struct {
	h      *history
	name   string
	client dynamic.ResourceInterface
	note   func(obj *unstructured.Unstructured, gone bool, at at)
}

func (h *history) streams() []stream {
	in := func(r schema.GroupVersionResource, namespace string, note func(*unstructured.Unstructured, bool, at)) stream {
		return stream{h, r.Resource + "/" + namespace, h.w.Dynamic.Resource(r).Namespace(namespace), note}
	}
	return []stream{
		in(api.Resource, h.w.namespace, h.noteTransaction),
		in(leases, h.w.namespace, h.noteLease),
		in(leases, system, h.noteLease),
		in(configMap.resource(), h.w.namespace, h.noteTarget),
		in(secret.resource(), h.w.namespace, h.noteTarget),
		in(deployment.resource(), h.w.namespace, h.noteTarget),
	}
}

// follow watches until ctx is done, across restarts of the API server.
func (s stream) follow(ctx context.Context, listed func()) {
	defer listed()
	first := true
	for ctx.Err() == nil {
		list, err := s.client.List(ctx, metav1.ListOptions{})
		if err != nil {
			breathe(ctx)
			continue
		}
		s.relist(list, !first)
		if !first {
			s.h.w.counts.add("watches begun anew after a gap", 1)
		}
		first = false
		listed()
		for version := list.GetResourceVersion(); version != "" && ctx.Err() == nil; {
			version = s.watch(ctx, version)
		}
	}
}

// breathe waits a moment before the next attempt.
func breathe(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(50 * time.Millisecond):
	}
}

// watch notes what happens after a version, and returns the last one it has seen, or
// nothing when the API server does not know that version any more.
func (s stream) watch(ctx context.Context, version string) string {
	watching, err := s.client.Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return ""
	}
	if err != nil {
		breathe(ctx)
		return version
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		obj, ok := event.Object.(*unstructured.Unstructured)
		if event.Type == watch.Error || !ok {
			if err := apierrors.FromObject(event.Object); apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return ""
			}
			breathe(ctx)
			return version
		}
		version = obj.GetResourceVersion()
		if event.Type != watch.Bookmark {
			s.h.take(s, obj, event.Type == watch.Deleted, false)
		}
	}
	return version
}

// relist notes what a list shows that is not known yet.
func (s stream) relist(list *unstructured.UnstructuredList, gap bool) {
	there := map[string]bool{}
	for i := range list.Items {
		obj := &list.Items[i]
		there[s.name+"/"+obj.GetName()] = true
		s.h.take(s, obj, false, gap)
	}
	s.h.mu.Lock()
	var gone []*unstructured.Unstructured
	for key, obj := range s.h.known {
		if strings.HasPrefix(key, s.name+"/") && !there[key] {
			last := obj.DeepCopy()
			last.SetResourceVersion(list.GetResourceVersion())
			gone = append(gone, last)
		}
	}
	s.h.mu.Unlock()
	for _, obj := range gone {
		s.h.take(s, obj, true, true)
	}
}

// take notes one version of an object.
func (h *history) take(s stream, obj *unstructured.Unstructured, gone, gap bool) {
	revision, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		h.w.t.Errorf("the resourceVersion of %s is no number: %v", obj.GetName(), err)
	}
	h.w.counts.add("versions seen by the watches", 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	key := s.name + "/" + obj.GetName()
	if h.current[key] == obj.GetResourceVersion() {
		return
	}
	if gone {
		delete(h.current, key)
		delete(h.known, key)
	} else {
		h.current[key] = obj.GetResourceVersion()
		h.known[key] = obj
	}
	s.note(obj, gone, at{revision, gap})
}

func (h *history) noteTarget(obj *unstructured.Unstructured, gone bool, at at) {
	into := h.targets
	if strings.HasPrefix(obj.GetName(), "hot-") {
		into = h.hots
	}
	v := seen{at: at, uid: obj.GetUID(), generation: obj.GetGeneration()}
	if !gone {
		v.state = text(project(obj))
	}
	ref := obj.GetKind() + "/" + obj.GetName()
	if before := into[ref]; len(before) > 0 && before[len(before)-1].state == v.state {
		return
	}
	into[ref] = append(into[ref], v)
}

func (h *history) noteTransaction(obj *unstructured.Unstructured, gone bool, at at) {
	var txn api.Transaction
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &txn); err != nil {
		h.w.t.Errorf("decode Transaction %s: %v", obj.GetName(), err)
	}
	h.txns[txn.Name] = append(h.txns[txn.Name], checkpoint{at, gone, txn.UID, txn.Status})
}

func (h *history) noteLease(obj *unstructured.Unstructured, gone bool, at at) {
	var lease coordinationv1.Lease
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &lease); err != nil {
		h.w.t.Errorf("decode Lease %s: %v", obj.GetName(), err)
	}
	name := lease.Namespace + "/" + lease.Name
	if lease.Name == leasetable.Name {
		h.noteTable(&lease, gone, at)
		return
	}
	h.leases[name] = append(h.leases[name], tenure{at, gone, lease.Spec})
}

// noteTable notes the Leases in a table as if each were an object. One write of a table may take out an entry and
// make another of that name.
func (h *history) noteTable(table *coordinationv1.Lease, gone bool, at at) {
	if err := leasetable.Broken(table); err != nil {
		h.w.t.Error(err)
	}
	h.w.counts.add("versions of tables of locks", 1)
	there := map[string]coordinationv1.Lease{}
	if !gone {
		for _, lease := range leasetable.Expand([]coordinationv1.Lease{*table}) {
			there[lease.Namespace+"/"+lease.Name] = lease
		}
	}
	for name, last := range h.tabled[table.Namespace] {
		if there[name].UID != last.UID {
			h.leases[name] = append(h.leases[name], tenure{at, true, last.Spec})
		}
	}
	for name, lease := range there {
		h.leases[name] = append(h.leases[name], tenure{at, false, lease.Spec})
	}
	h.tabled[table.Namespace] = there
}

// phase is where a Transaction was when it was last seen.
func (h *history) phase(name string) api.Phase {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := h.txns[name]
	if len(seen) == 0 {
		return ""
	}
	return seen[len(seen)-1].status.Phase
}

// catchUp waits until the watches have seen all that is there.
func (h *history) catchUp() {
	h.w.t.Helper()
	for _, s := range h.streams() {
		h.w.until("the watch of "+s.name+" has seen everything", func(ctx context.Context) bool {
			list, err := s.client.List(ctx, metav1.ListOptions{})
			return err == nil && h.knows(s, list)
		})
	}
}

func (h *history) knows(s stream, list *unstructured.UnstructuredList) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for key := range h.current {
		if strings.HasPrefix(key, s.name+"/") {
			n++
		}
	}
	for i := range list.Items {
		if h.current[s.name+"/"+list.Items[i].GetName()] != list.Items[i].GetResourceVersion() {
			return false
		}
	}
	return n == len(list.Items)
}
