package bench

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// atOnceClients is how many bare clients work side by side.
const atOnceClients = 8

// floor sends, for each of n ConfigMaps, the requests that a promise of Janus needs, and
// nothing else: no Transaction is written, nothing is recorded, nobody is impersonated. It
// tries each change, locks each target, reads it, changes one after the other, hands the
// fields over, and unlocks, side by side wherever a Transaction may do that too. No program
// that sends these requests can be faster.
func (s *stage) floor(ctx context.Context, namespace string, n int, value string) error {
	before, after, leases := make([]*corev1.ConfigMap, n), make([]*corev1.ConfigMap, n), make([]*coordinationv1.Lease, n)
	maps, locks := s.client.Kube.CoreV1().ConfigMaps(namespace), s.client.Kube.CoordinationV1().Leases(namespace)
	change := func(ctx context.Context, i int, dryRun ...string) (*corev1.ConfigMap, error) {
		return maps.Patch(ctx, fmt.Sprintf("c-%d", i), types.ApplyPatchType, []byte(one(i, value)),
			metav1.PatchOptions{FieldManager: "floor", Force: ptr.To(true), DryRun: dryRun})
	}
	for _, step := range []struct {
		clients int
		send    func(ctx context.Context, i int) error
	}{
		{atOnceClients, func(ctx context.Context, i int) error {
			_, err := change(ctx, i, metav1.DryRunAll)
			return err
		}},
		{atOnceClients, func(ctx context.Context, i int) (err error) {
			leases[i], err = locks.Create(ctx, &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("floor-%d", i)},
				Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("floor"), LeaseDurationSeconds: ptr.To(int32(300))},
			}, metav1.CreateOptions{})
			return err
		}},
		{atOnceClients, func(ctx context.Context, i int) (err error) {
			before[i], err = maps.Get(ctx, fmt.Sprintf("c-%d", i), metav1.GetOptions{})
			return err
		}},
		{1, func(ctx context.Context, i int) (err error) {
			after[i], err = change(ctx, i)
			return err
		}},
		{atOnceClients, func(ctx context.Context, i int) error {
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
				"resourceVersion": after[i].ResourceVersion, "managedFields": before[i].ManagedFields,
			}})
			if err != nil {
				return err
			}
			_, err = maps.Patch(ctx, after[i].Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		}},
		{atOnceClients, func(ctx context.Context, i int) error {
			lease := leases[i]
			return locks.Delete(ctx, lease.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}})
		}},
	} {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(step.clients)
		for i := range n {
			group.Go(func() error { return step.send(ctx, i) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}
