package main

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/leasetable"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/lockmgr"
)

// lockOf notes the lock of an item, and who holds it. Who may see Transactions may not see Leases for
// that.
func (s *session) lockOf(ctx context.Context, t *api.Transaction, item *api.Item, n *itemNode) (err error) {
	switch {
	case item.LockLease != "" && !ended(t):
		n.Lock = item.LockLease
		if n.LockHolder, err = s.holder(ctx, item.LockLease); apierrors.IsForbidden(err) {
			n.LockHolder = "(cannot be read)"
			return nil
		}
	case item.LockLease == "" && waitsForLocks(t) && item.Resource != "" && item.Changes():
		if n.WaitsForLockOf, err = s.holders(ctx, item); apierrors.IsForbidden(err) {
			n.unread = append(n.unread, "waits for its lock (whose holder cannot be read)")
			return nil
		}
	}
	return err
}

// waitsForLocks reports whether a Transaction waits for the locks of its targets. It has taken none
// of them then: those that it got it has given back.
func waitsForLocks(t *api.Transaction) bool {
	_, reason, _ := reasonOf(t)
	return reason == errclass.LockHeld && !ended(t)
}

// holders says who holds the lock of the target of an item.
func (s *session) holders(ctx context.Context, item *api.Item) ([]string, error) {
	client, err := s.kube()
	if err != nil {
		return nil, err
	}
	gvk := kindOf(item.Target)
	key := lockmgr.Key{ID: objectid.ID{Group: gvk.Group, Resource: item.Resource, Namespace: item.Target.Namespace, Name: item.Target.Name}, Kind: gvk.Kind}
	var holders []string
	// A Lease of its own, or an entry in that of its namespace: who looks need not know how janusd keeps locks.
	for _, leases := range []coordinationv1client.LeasesGetter{client.CoordinationV1(), leasetable.New(client.CoordinationV1(), systemNamespace)} {
		if len(holders) == 0 && err == nil {
			holders, err = lockmgr.New(leases, lockmgr.Options{Namespace: systemNamespace, Clock: clock.RealClock{}}).HoldersOf(ctx, key)
		}
	}
	for i, holder := range holders {
		holders[i] = errclass.Printable(api.DescribeHolder(holder))
	}
	return holders, err
}

// holder says who holds a lock, named as namespace/name.
func (s *session) holder(ctx context.Context, lease string) (string, error) {
	client, err := s.kube()
	if err != nil {
		return "", err
	}
	namespace, name := split(lease)
	l, err := leasetable.Find(ctx, client.CoordinationV1().Leases(namespace), name)
	switch {
	case apierrors.IsNotFound(err):
		return "nobody", nil
	case err != nil:
		return "", err
	default:
		return holderOf(l), nil
	}
}
