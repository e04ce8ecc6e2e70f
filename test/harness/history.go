package harness

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"janus.io/janus/test/oracle"
)

// Watched are the resources that a Watcher looks at: all that Transactions of tests
// change, and what those and Janus leave behind.
var Watched = []schema.GroupVersionResource{
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "secrets"},
	{Version: "v1", Resource: "events"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "serviceaccounts"},
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "persistentvolumeclaims"},
	{Version: "v1", Resource: "persistentvolumes"},
	{Version: "v1", Resource: "namespaces"},
	{Version: "v1", Resource: "resourcequotas"},
	{Version: "v1", Resource: "podtemplates"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "batch", Version: "v1", Resource: "jobs"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	{Group: "backup.janus.io", Version: "v1alpha1", Resource: "transactions"},
}

// Watcher sees every version of every watched object, as the administrator and by
// connections of its own: what it has seen does not depend on Janus. One serves all
// runs on a cluster, side by side or one after the other.
type Watcher struct {
	*watching
	t testing.TB
}

// watching is what the Watchers of several tests share.
type watching struct {
	client *Client
	ctx    context.Context //nolint:containedctx // it is the lifetime of the watches, not of a call

	mu        sync.Mutex
	changed   *sync.Cond
	streams   map[schema.GroupVersionResource]*following
	histories map[string]oracle.History // by namespace
	forgotten map[string]bool
	broken    error
}

// following is how far the watch of a resource has come.
type following struct {
	passed int64
	live   map[oracle.Ref]int64 // what is there now, with its resourceVersion
}

// quiet are namespaces in which nothing of a test happens.
var quiet = map[string]bool{"kube-system": true, "kube-node-lease": true, "kube-public": true, markers: true}

// NewWatcher makes a Watcher of the resources in Watched and of those given, and
// returns when it sees them all. It ends with the test.
func NewWatcher(t testing.TB, client *Client, also ...schema.GroupVersionResource) *Watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &watching{
		client: client, ctx: ctx, streams: map[schema.GroupVersionResource]*following{},
		histories: map[string]oracle.History{}, forgotten: map[string]bool{},
	}
	w.changed = sync.NewCond(&w.mu)
	var done sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	require.NoError(t, w.makeMarkers())
	for _, gvr := range append(slices.Clone(Watched), also...) {
		stream, version, err := w.begin(gvr)
		require.NoError(t, err, "watch %s", gvr)
		done.Go(func() { w.follow(gvr, stream, version) })
	}
	return &Watcher{watching: w, t: t}
}

// For is the same Watcher, with failures reported to another test.
func (w *Watcher) For(t testing.TB) *Watcher { return &Watcher{watching: w.watching, t: t} }

// History returns every version in the namespaces that was stored before the call,
// in order; the Namespaces themselves are in it too, and with "" what belongs to no
// namespace. It is called when nobody writes there any more.
func (w *Watcher) History(namespaces ...string) oracle.History {
	w.t.Helper()
	require.NoError(w.t, w.settle(namespaces), "wait until the watches have seen everything")
	w.mu.Lock()
	defer w.mu.Unlock()
	var out oracle.History
	for _, ns := range namespaces {
		out = append(out, w.histories[ns]...)
	}
	slices.SortStableFunc(out, func(a, b oracle.Version) int { return cmp.Compare(a.Revision, b.Revision) })
	return out
}

// Forget drops what is known of the namespaces. Nothing more of them is kept.
func (w *Watcher) Forget(namespaces ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ns := range namespaces {
		delete(w.histories, ns)
		w.forgotten[ns] = ns != ""
	}
	for _, of := range w.streams {
		for ref := range of.live {
			if w.forgotten[ref.Namespace] {
				delete(of.live, ref)
			}
		}
	}
}

// begin lists a resource and opens its watch.
func (w *watching) begin(gvr schema.GroupVersionResource) (watch.Interface, string, error) {
	list, err := w.client.Dynamic.Resource(gvr).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return nil, "", err
	}
	at, err := strconv.ParseInt(list.GetResourceVersion(), 10, 64)
	if err != nil {
		return nil, "", fmt.Errorf("the resourceVersion of a list: %w", err)
	}
	w.mu.Lock()
	w.streams[gvr] = &following{passed: at, live: map[oracle.Ref]int64{}}
	w.mu.Unlock()
	for i := range list.Items {
		w.enter(gvr, &list.Items[i], false)
	}
	stream, err := w.open(gvr, list.GetResourceVersion())
	return stream, list.GetResourceVersion(), err
}

func (w *watching) open(gvr schema.GroupVersionResource, version string) (watch.Interface, error) {
	return w.client.Dynamic.Resource(gvr).Watch(w.ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
}

// follow reads a watch for as long as the Watcher lives, and opens it again where
// it broke off.
func (w *watching) follow(gvr schema.GroupVersionResource, stream watch.Interface, version string) {
	for {
		for event := range stream.ResultChan() {
			if event.Type == watch.Error {
				if err := apierrors.FromObject(event.Object); apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
					w.fail(fmt.Errorf("the watch of %s has a gap: %w", gvr, err))
					return
				}
				break
			}
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			version = object.GetResourceVersion()
			if event.Type == watch.Bookmark {
				w.pass(gvr, version)
				continue
			}
			w.enter(gvr, object, event.Type == watch.Deleted)
		}
		stream.Stop()
		err := Poll(w.ctx, func(context.Context) (bool, error) {
			next, err := w.open(gvr, version)
			if err == nil {
				stream = next
			}
			return err == nil, nil
		})
		if w.ctx.Err() != nil {
			return
		}
		if err != nil {
			w.fail(fmt.Errorf("the watch of %s does not open again: %w", gvr, err))
			return
		}
	}
}

// enter notes a version of an object.
func (w *watching) enter(gvr schema.GroupVersionResource, object *unstructured.Unstructured, deleted bool) {
	revision, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if err != nil {
		w.fail(fmt.Errorf("the resourceVersion of %s %s: %w", object.GetKind(), object.GetName(), err))
		return
	}
	ref := oracle.Ref{Resource: gvr.GroupResource().String(), Namespace: object.GetNamespace(), Name: object.GetName()}
	home := ref.Namespace
	if ref.Resource == "namespaces" {
		home = ref.Name
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.changed.Broadcast()
	of := w.streams[gvr]
	of.passed = max(of.passed, revision)
	if quiet[home] || w.forgotten[home] {
		return
	}
	if deleted {
		delete(of.live, ref)
	} else {
		of.live[ref] = revision
	}
	w.histories[home] = append(w.histories[home], oracle.Version{Ref: ref, Revision: revision, Object: object, Deleted: deleted})
}

// pass notes that a watch has come as far as a version.
func (w *watching) pass(gvr schema.GroupVersionResource, version string) {
	revision, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams[gvr].passed = max(w.streams[gvr].passed, revision)
	w.changed.Broadcast()
}

// fail makes every further History an error.
func (w *watching) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken == nil && w.ctx.Err() == nil {
		w.broken = err
	}
	w.changed.Broadcast()
}
