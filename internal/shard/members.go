package shard

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"
)

// Labels of the Leases by which the replicas know of each other.
const (
	labelName      = "app.kubernetes.io/name"
	labelComponent = "app.kubernetes.io/component"
	// labelShards is into how many shards a replica divides the Transactions.
	labelShards = "janus.io/shards"

	componentReplica = "replica"
	componentShard   = "shard"
)

// labelsOf are the labels of the Leases of a component, which are those of a group.
func (r *Replica) labelsOf(component string) map[string]string {
	if r.Group != "" {
		component += "-" + r.Group
	}
	return map[string]string{labelName: "janusd", labelComponent: component}
}

func (r *Replica) leases() coordinationclient.LeaseInterface {
	return r.Client.CoordinationV1().Leases(r.Namespace)
}

// meet renews the Lease by which the others see this replica, and returns the Leases of all.
func (r *Replica) meet(ctx context.Context) ([]coordinationv1.Lease, error) {
	if err := r.beat(ctx); err != nil {
		return nil, err
	}
	list, err := r.leases().List(ctx, metav1.ListOptions{LabelSelector: labels.Set{labelName: "janusd"}.String()})
	if err != nil {
		return nil, fmt.Errorf("list the Leases of the replicas in namespace %s: %w", r.Namespace, err)
	}
	r.seen.look(list.Items, r.Clock.Now())
	return list.Items, nil
}

// name is that of this replica's Lease.
func (r *Replica) name() string { return fmt.Sprintf("janusd-replica-%016x", hash(r.Identity)) }

// beat makes or renews this replica's Lease, which the others have deleted if they have not
// heard of it for long.
func (r *Replica) beat(ctx context.Context) error {
	now := metav1.NewMicroTime(r.Clock.Now())
	if r.own == nil {
		own, err := r.leases().Get(ctx, r.name(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			own, err = r.leases().Create(ctx, r.newLease(now), metav1.CreateOptions{})
		}
		if err != nil {
			return fmt.Errorf("make the Lease %s/%s of this replica: %w", r.Namespace, r.name(), err)
		}
		r.own = own
	}
	r.own.Spec.RenewTime = &now
	own, err := r.leases().Update(ctx, r.own, metav1.UpdateOptions{})
	if err != nil {
		r.own = nil // The next time it is looked for.
		return fmt.Errorf("renew the Lease %s/%s of this replica: %w", r.Namespace, r.name(), err)
	}
	r.own = own
	return nil
}

// seconds is how long a Lease lasts that is not renewed.
func (r *Replica) seconds() *int32 {
	return ptr.To(int32(r.Duration / time.Second)) //nolint:gosec // it fits
}

func (r *Replica) newLease(now metav1.MicroTime) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{}
	lease.Name, lease.Labels = r.name(), r.labelsOf(componentReplica)
	lease.Labels[labelShards] = strconv.Itoa(r.Shards)
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: &r.Identity, LeaseDurationSeconds: r.seconds(),
		AcquireTime: &now, RenewTime: &now,
	}
	return lease
}

// alive returns the replicas that renew their Leases, and deletes those of the others.
func (r *Replica) alive(ctx context.Context, leases []coordinationv1.Lease) []member {
	var out []member
	now, component := r.Clock.Now(), r.labelsOf(componentReplica)[labelComponent]
	for i := range leases {
		lease := &leases[i]
		shards, err := strconv.Atoi(lease.Labels[labelShards])
		switch {
		case lease.Labels[labelComponent] != component || err != nil || shards < 1:
		case lease.Name != r.name() && r.seen.expired(lease, now):
			r.bury(ctx, lease)
		default:
			out = append(out, member{name: lease.Name, shards: shards, since: lease.CreationTimestamp.Time})
		}
	}
	return out
}

// bury deletes the Lease of a replica that is dead. Should it only have hung, it makes
// itself another when it wakes up.
func (r *Replica) bury(ctx context.Context, lease *coordinationv1.Lease) {
	r.Log.Info("a replica is gone: it has not renewed its Lease in time",
		zap.String("lease", r.Namespace+"/"+lease.Name), zap.String("replica", ptr.Deref(lease.Spec.HolderIdentity, "")))
	err := r.leases().Delete(ctx, lease.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		r.Log.Warn("deleting the Lease of a replica that is gone failed; trying again", zap.String("lease", r.Namespace+"/"+lease.Name), zap.Error(err))
	}
}

// succeed takes the Lease of a shard from a holder that has not renewed it in time. Client-go
// would do that too, but only when it has seen it unchanged for that time itself, and it has
// not looked before this replica began to contend.
func (r *Replica) succeed(ctx context.Context, leases []coordinationv1.Lease, number int) {
	now := r.Clock.Now()
	for i := range leases {
		lease := &leases[i]
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		if lease.Name != r.leaseOf(number) || holder == "" || holder == r.Identity || !r.seen.expired(lease, now) {
			continue
		}
		r.Log.Info("taking a shard from a replica that has not renewed its Lease in time", zap.Int("shard", number), zap.String("replica", holder))
		lease.Spec = coordinationv1.LeaseSpec{
			HolderIdentity: &r.Identity, LeaseDurationSeconds: r.seconds(),
			AcquireTime: ptr.To(metav1.NewMicroTime(now)), RenewTime: ptr.To(metav1.NewMicroTime(now)),
			LeaseTransitions: ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1),
		}
		_, err := r.leases().Update(ctx, lease, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) {
			r.Log.Warn("taking a shard failed; trying again", zap.Int("shard", number), zap.Error(err))
		}
	}
}

// leave tells the others that this replica goes.
func (r *Replica) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.Duration*2/3)
	defer cancel()
	err := r.leases().Delete(ctx, r.name(), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		r.Log.Warn("announcing to the other replicas that this one stops failed; they see it when its Lease expires", zap.Error(err))
	}
}
