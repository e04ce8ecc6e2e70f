package controller

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/packages/v1alpha1"
)

// lockName is the name of the Lease.
const lockName = "janus-package-transactions"

// lock is the Lease that one PackageTransaction has at a time. Its leaseTransitions count
// them. It is never deleted, so that no number is given twice.
type lock struct {
	leases    coordinationclient.LeaseInterface
	namespace string
	clock     clock.Clock
}

// record is the Lease as it was read; without a Lease if there is none.
type record struct{ lease *coordinationv1.Lease }

// holder is the name and the uid of who has the lock.
func (r record) holder() (name, uid string, held bool) {
	if r.lease == nil {
		return "", "", false
	}
	return strings.Cut(ptr.Deref(r.lease.Spec.HolderIdentity, ""), "/")
}

// number is the last that was given.
func (r record) number() int64 {
	if r.lease == nil {
		return 0
	}
	return int64(ptr.Deref(r.lease.Spec.LeaseTransitions, 0))
}

func (l lock) read(ctx context.Context) (record, error) {
	lease, err := l.leases.Get(ctx, lockName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		// See confirmed.
		lease, err = l.leases.Get(ctx, lockName, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return record{}, nil
	}
	if err != nil {
		return record{}, fmt.Errorf("read the lock of PackageTransactions: %w", err)
	}
	return record{lease}, nil
}

// acquire takes a lock that nobody has, unless it was written since it was read.
func (l lock) acquire(ctx context.Context, r record, p *api.PackageTransaction, number int64) error {
	now := &metav1.MicroTime{Time: l.clock.Now()}
	spec := coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To(p.Name + "/" + string(p.UID)), AcquireTime: now, RenewTime: now,
		LeaseTransitions: ptr.To(int32(number)), //nolint:gosec // one for each PackageTransaction
	}
	var err error
	if r.lease == nil {
		_, err = l.leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: lockName, Labels: map[string]string{"app.kubernetes.io/name": "janusd"}}, Spec: spec,
		}, metav1.CreateOptions{})
	} else {
		lease := r.lease.DeepCopy()
		lease.Spec = spec
		_, err = l.leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("take the lock of PackageTransactions: %w", err)
	}
	return nil
}

// release releases the lock, unless it was written since it was read.
func (l lock) release(ctx context.Context, r record) (record, error) {
	lease := r.lease.DeepCopy()
	lease.Spec.HolderIdentity, lease.Spec.AcquireTime = nil, nil
	lease, err := l.leases.Update(ctx, lease, metav1.UpdateOptions{})
	if err != nil {
		return record{}, fmt.Errorf("release the lock of PackageTransactions: %w", err)
	}
	return record{lease}, nil
}
