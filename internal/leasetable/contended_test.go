package leasetable

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// contended is a client of a table that another client always writes first. The error is that of its writes.
type contended struct {
	coordinationv1client.LeaseInterface
	table *coordinationv1.Lease
	err   error
}

func (c contended) Leases(string) coordinationv1client.LeaseInterface { return c }

func (c contended) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	return c.table.DeepCopy(), nil
}

func (c contended) Update(context.Context, *coordinationv1.Lease, metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return nil, c.err
}

func (c contended) Create(context.Context, *coordinationv1.Lease, metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return nil, apierrors.NewAlreadyExists(resource, Name)
}

// Who loses every race is told so: a lock that was not released would stay behind otherwise. That the table was
// found to be gone says nothing of an entry either.
func TestWhoLosesEveryRaceIsToldSo(t *testing.T) {
	t.Parallel()
	s := newSheet(t)
	s.ask(creates(lease("held", "a")), creates(lease("other", "b")))
	for name, err := range map[string]error{
		"the table is another": apierrors.NewConflict(resource, Name, errContended),
		"there is no table":    apierrors.NewNotFound(resource, Name),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := New(contended{table: s.table.known, err: err}, "apart").Leases("shop")
			require.True(t, apierrors.IsConflict(all.Delete(t.Context(), "held", metav1.DeleteOptions{})))
			_, err := all.Create(t.Context(), lease("new", "a"), metav1.CreateOptions{})
			require.True(t, apierrors.IsConflict(err), "%v", err)
			_, err = all.Update(t.Context(), s.has()["held"], metav1.UpdateOptions{})
			require.True(t, apierrors.IsConflict(err), "%v", err)
			require.True(t, apierrors.IsNotFound(all.Delete(t.Context(), "absent", metav1.DeleteOptions{})))
			found, err := all.Get(t.Context(), "held", metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, "a", *found.Spec.HolderIdentity)
		})
	}
}
