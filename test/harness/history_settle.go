package harness

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"janus.io/janus/test/oracle"
)

// markers is the namespace of the objects by which a Watcher sees how far its
// watches have come. A watch tells in order: what has told of a write that was made
// just now has told of all before.
const markers = "janus-watcher"

// marked are the objects of that kind. Other resources are compared with a list:
// that misses only what was made and deleted within the last moment.
var marked = map[schema.GroupVersionResource]string{
	{Version: "v1", Resource: "configmaps"}:                                `{apiVersion: v1, kind: ConfigMap}`,
	{Version: "v1", Resource: "secrets"}:                                   `{apiVersion: v1, kind: Secret}`,
	{Version: "v1", Resource: "events"}:                                    `{apiVersion: v1, kind: Event, involvedObject: {namespace: janus-watcher}}`,
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}:      `{apiVersion: coordination.k8s.io/v1, kind: Lease}`,
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}: `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}`,
}

// makeMarkers makes the markers; those of an earlier Watcher will do.
func (w *watching) makeMarkers() error {
	if err := w.client.ApplyYAML(w.ctx, "", "{apiVersion: v1, kind: Namespace, metadata: {name: "+markers+"}}"); err != nil {
		return err
	}
	for gvr, content := range marked {
		objects, err := Decode(content)
		if err != nil {
			return err
		}
		objects[0].SetName("marker")
		objects[0].SetNamespace(markers)
		_, err = w.client.Dynamic.Resource(gvr).Namespace(markers).Create(w.ctx, objects[0], metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make the marker of %s: %w", gvr, err)
		}
	}
	return nil
}

// settle waits until every watch has told of what was stored before the call.
func (w *watching) settle(namespaces []string) error {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	defer context.AfterFunc(ctx, w.wake)()
	for gvr := range w.touched(namespaces) {
		var err error
		if marked[gvr] != "" {
			err = w.settleByMarker(ctx, gvr)
		} else {
			err = w.settleByList(ctx, gvr, namespaces)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", gvr.GroupResource(), err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken
}

// touched are the resources of which the namespaces have had objects, and those
// whose objects come and go in a moment.
func (w *watching) touched(namespaces []string) map[schema.GroupVersionResource]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	resources := map[string]bool{"transactions.backup.janus.io": true}
	for _, ns := range namespaces {
		for _, v := range w.histories[ns] {
			resources[v.Ref.Resource] = true
		}
	}
	out := map[schema.GroupVersionResource]bool{}
	for gvr := range w.streams {
		if resources[gvr.GroupResource().String()] || marked[gvr] != "" {
			out[gvr] = true
		}
	}
	return out
}

// settleByMarker writes a marker and waits for it to be seen.
func (w *watching) settleByMarker(ctx context.Context, gvr schema.GroupVersionResource) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"janus.io/turn":%q}}}`, uuid.NewUUID())
	marker, err := w.client.Dynamic.Resource(gvr).Namespace(markers).Patch(ctx, "marker", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("write the marker: %w", err)
	}
	revision, err := strconv.ParseInt(marker.GetResourceVersion(), 10, 64)
	if err != nil {
		return err
	}
	return w.await(ctx, func() bool { return w.streams[gvr].passed >= revision })
}

// settleByList waits until what was seen agrees with what is listed.
func (w *watching) settleByList(ctx context.Context, gvr schema.GroupVersionResource, namespaces []string) error {
	for _, ns := range namespaces {
		list, err := w.listOf(ctx, gvr, ns)
		if err != nil {
			return err
		}
		at, err := strconv.ParseInt(list.GetResourceVersion(), 10, 64)
		if err != nil {
			return err
		}
		err = w.await(ctx, func() bool { return w.agrees(gvr, ns, list, at) })
		if err != nil {
			return err
		}
	}
	return nil
}

// listOf lists the objects that are kept with a namespace.
func (w *watching) listOf(ctx context.Context, gvr schema.GroupVersionResource, ns string) (*unstructured.UnstructuredList, error) {
	if gvr.Resource == "namespaces" {
		return w.client.Dynamic.Resource(gvr).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + ns})
	}
	return w.client.Dynamic.Resource(gvr).Namespace(ns).List(ctx, metav1.ListOptions{})
}

// agrees reports whether everything in a list was seen, and of everything that is
// not in it the end.
func (w *watching) agrees(gvr schema.GroupVersionResource, ns string, list *unstructured.UnstructuredList, at int64) bool {
	resource := gvr.GroupResource().String()
	listed := map[oracle.Ref]bool{}
	for i := range list.Items {
		item := &list.Items[i]
		if ns == "" && item.GetNamespace() != "" {
			continue
		}
		ref := oracle.Ref{Resource: resource, Namespace: item.GetNamespace(), Name: item.GetName()}
		listed[ref] = true
		stored, err := strconv.ParseInt(item.GetResourceVersion(), 10, 64)
		if err != nil || w.streams[gvr].passed < stored {
			return false
		}
	}
	for ref, revision := range w.streams[gvr].live {
		here := ref.Namespace == ns || resource == "namespaces" && ref.Name == ns
		if here && !listed[ref] && revision <= at {
			return false
		}
	}
	return true
}

// await waits for something that events change; it is asked under the lock.
func (w *watching) await(ctx context.Context, done func() bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !done() {
		if w.broken != nil {
			return w.broken
		}
		if ctx.Err() != nil {
			return fmt.Errorf("not seen within %s", patience)
		}
		w.changed.Wait()
	}
	return nil
}

func (w *watching) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed.Broadcast()
}
