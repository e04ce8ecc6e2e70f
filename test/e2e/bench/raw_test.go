package bench

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// one is what everybody makes of a ConfigMap.
func one(i int, value string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c-%d"}, "data": {"version": %q, "size": "small"}}`, i, value)
}

// apply is what the bare client does: one server-side apply.
func (s *stage) apply(ctx context.Context, namespace string, i int, value string) error {
	_, err := s.client.Kube.CoreV1().ConfigMaps(namespace).Patch(ctx, fmt.Sprintf("c-%d", i), types.ApplyPatchType, []byte(one(i, value)),
		metav1.PatchOptions{FieldManager: "bench", Force: ptr.To(true)})
	return err
}

// inTurn applies n ConfigMaps one after the other.
func (s *stage) inTurn(ctx context.Context, namespace string, n int, value string) error {
	for i := range n {
		if err := s.apply(ctx, namespace, i, value); err != nil {
			return err
		}
	}
	return nil
}

// sideBySide applies the ConfigMaps from first on, up to last, by some bare clients at once.
func (s *stage) sideBySide(ctx context.Context, namespace string, first, last int, value string, clients int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for i := first; i < last; i++ {
		group.Go(func() error { return s.apply(ctx, namespace, i, value) })
	}
	return group.Wait()
}
