package snapshot

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

// Drop deletes the before-images that ref names, as is done on commit. It may be
// repeated after any error, and leaves alone what does not belong to this
// Transaction.
//
// An object costs two requests: a patch takes off the finalizer, then the object
// is deleted. The patch itself tests whose the object is, which saves reading it,
// and its answer has the uid and resourceVersion for the deletion. After a crash
// between the two, the object goes with the Transaction at the latest; the other
// way round it would be left terminating, and keep its namespace from ending. An
// object that another client has changed costs two requests more.
func (s *Store) Drop(ctx context.Context, o Owner, ref api.RollbackRef) error {
	return s.each(listed(o.Name, &ref), func(p place) error { return s.drop(ctx, o, p, s.letGo) })
}

// DropKept is Drop for before-images that Keep has let go of, when their Transaction is
// to be remembered no more. They have no finalizer, so that the patch of Drop would be
// refused for each: here an object is read, and deleted if it is as it should be. One
// that has a finalizer of ours all the same costs one request more.
func (s *Store) DropKept(ctx context.Context, o Owner, ref api.RollbackRef) error {
	return s.each(listed(o.Name, &ref), func(p place) error { return s.drop(ctx, o, p, s.letGoChanged) })
}

// Keep lets go of the before-images that ref names without deleting them: they go
// when the Transaction goes. That is for the end of a rollback or a failure; an
// object costs one request, and two more if another client has changed it.
func (s *Store) Keep(ctx context.Context, o Owner, ref api.RollbackRef) error {
	return s.each(listed(o.Name, &ref), func(p place) error {
		_, _, err := s.letGo(ctx, o, p)
		return err
	})
}

// each does something with several objects side by side, with all of them even
// if some fail.
func (s *Store) each(places []place, do func(place) error) error {
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, p := range places {
		group.Go(func() error { return do(p) })
	}
	return group.Wait()
}

// drop deletes an object once letGo has taken our finalizer off.
func (s *Store) drop(ctx context.Context, o Owner, p place, letGo func(context.Context, Owner, place) (metav1.ObjectMeta, bool, error)) error {
	meta, there, err := letGo(ctx, o, p)
	if err != nil || !there {
		return err
	}
	err = s.objects.delete(ctx, p.kind, meta)
	if errclass.Is(err, errclass.NotFound) {
		return nil
	}
	return wrap(err, "delete", o.Namespace, p.kind, meta.Name, false)
}

// jsonPatch is one operation of a JSON patch.
type jsonPatch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// letGo takes our finalizer off an object. It says whether there still is an
// object of this Transaction, and which.
func (s *Store) letGo(ctx context.Context, o Owner, p place) (meta metav1.ObjectMeta, there bool, err error) {
	name := objectName(o.Name, p.number)
	meta, err = s.objects.patch(ctx, o.Namespace, p.kind, name, types.JSONPatchType, []jsonPatch{
		{Op: "test", Path: "/metadata/ownerReferences/0/uid", Value: o.UID},
		{Op: "test", Path: "/metadata/finalizers", Value: []string{Finalizer}},
		{Op: "remove", Path: "/metadata/finalizers"},
	})
	if errclass.Is(err, errclass.Invalid) {
		// A test of the patch has failed: the object is not as we made it.
		return s.letGoChanged(ctx, o, p)
	}
	return s.released(o, p, meta, err)
}

// letGoChanged takes our finalizer off an object that another client has changed, or
// that was let go before.
func (s *Store) letGoChanged(ctx context.Context, o Owner, p place) (meta metav1.ObjectMeta, there bool, err error) {
	name := objectName(o.Name, p.number)
	meta, err = target.Confirmed(func() (metav1.ObjectMeta, error) { return s.objects.metadata(ctx, o.Namespace, p.kind, name) })
	switch {
	case errclass.Is(err, errclass.NotFound):
		return meta, false, nil
	case err != nil:
		return meta, false, wrap(err, "get", o.Namespace, p.kind, name, false)
	case !ownedBy(meta, o) && !orphaned(meta, o):
		return meta, false, nil
	case !slices.Contains(meta.Finalizers, Finalizer):
		return meta, true, nil
	}
	others := slices.DeleteFunc(slices.Clone(meta.Finalizers), func(f string) bool { return f == Finalizer })
	// With uid and resourceVersion in the body a stale merge patch is a 409.
	meta, err = s.objects.patch(ctx, o.Namespace, p.kind, name, types.MergePatchType, map[string]any{
		"metadata": map[string]any{"uid": meta.UID, "resourceVersion": meta.ResourceVersion, "finalizers": others},
	})
	return s.released(o, p, meta, err)
}

// orphaned reports whether an object is a before-image of the Transaction's name
// that belongs to no Transaction: a deletion with propagation Orphan, or another client,
// has taken its owner off, or another client has put a lost one back without. It has the
// name of a before-image of ours, and either our finalizer, which nobody else would ever
// take off, or still says whose it was.
func orphaned(meta metav1.ObjectMeta, o Owner) bool {
	_, owned := transactionOf(meta)
	marked := meta.Annotations[annotationBatch] != "" && meta.Annotations[api.TransactionKey] == o.Name
	return !owned && (slices.Contains(meta.Finalizers, Finalizer) || marked)
}

// released judges the answer to the patch that took the finalizer off.
func (s *Store) released(o Owner, p place, meta metav1.ObjectMeta, err error) (metav1.ObjectMeta, bool, error) {
	switch {
	case errclass.Is(err, errclass.NotFound):
		return meta, false, nil
	case err != nil:
		return meta, false, wrap(err, "remove the finalizer of", o.Namespace, p.kind, objectName(o.Name, p.number), false)
	default:
		// An object that was being deleted is gone with its last finalizer, and
		// with other finalizers will be gone without us.
		return meta, meta.DeletionTimestamp == nil, nil
	}
}
