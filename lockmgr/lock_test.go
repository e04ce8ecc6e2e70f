package lockmgr

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/internal/sharedlease"
)

func TestTTLIsRoundedUpToWholeSecondsAndOneAtLeast(t *testing.T) {
	t.Parallel()
	for ttl, want := range map[time.Duration]int32{
		-time.Second: 1, 0: 1, time.Nanosecond: 1, time.Second: 1, time.Second + 1: 2,
		30 * time.Second: 30, 1500 * time.Millisecond: 2, math.MaxInt64: math.MaxInt32,
	} {
		require.Equal(t, want, Holder{TTL: ttl}.seconds(), ttl)
	}
}

func TestParseLockIsTheInverseOfString(t *testing.T) {
	t.Parallel()
	lock := Lock{Key: deployment("shop", "web"), Namespace: "shop", Name: "janus-lock-x"}
	require.Equal(t, "shop/janus-lock-x", lock.String())
	parsed, err := ParseLock(lock.Key, lock.String())
	require.NoError(t, err)
	require.Equal(t, lock, parsed)
	for _, bad := range []string{"", "x", "/x", "x/", "a/b/c"} {
		_, err := ParseLock(lock.Key, bad)
		require.Error(t, err, bad)
	}
}

func TestErrorsNameTargetLeaseAndHolder(t *testing.T) {
	t.Parallel()
	key := deployment("shop", "web")
	held := &HeldError{Key: key, Lease: "shop/l", Holder: "somebody\x1b[31m", Until: 5 * time.Second}
	require.EqualError(t, held, `lock of deployments.apps shop/web is held: Lease shop/l has holder "somebody\x1b[31m" for up to 5s`)
	lost := &LostError{Lock: Lock{Key: key, Namespace: "shop", Name: "l"}, Holder: "somebody"}
	require.EqualError(t, lost, `lock of deployments.apps shop/web is lost: Lease shop/l has holder "somebody"`)
}

func TestAHolderWithoutIdentityIsRefused(t *testing.T) {
	t.Parallel()
	m := New(nil, Options{})
	_, err := m.Acquire(t.Context(), Holder{}, nil)
	require.ErrorIs(t, err, errNoIdentity)
	require.ErrorIs(t, m.Keep(t.Context(), Holder{}, nil), errNoIdentity)
	require.ErrorIs(t, m.Release(t.Context(), Holder{}, nil), errNoIdentity)
	require.ErrorIs(t, m.Release(t.Context(), holder(sharedlease.Holder), nil), errReserved)
}

func TestOnlyACertainRefusalProvesThatNoLeaseWasMade(t *testing.T) {
	t.Parallel()
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for err, want := range map[error]bool{
		apierrors.NewForbidden(leases, "x", nil):               true,
		apierrors.NewNotFound(leases, "x"):                     true,
		apierrors.NewBadRequest("no"):                          true,
		apierrors.NewAlreadyExists(leases, "x"):                false,
		apierrors.NewTooManyRequestsError("later"):             false,
		apierrors.NewTimeoutError("slow", 1):                   false,
		apierrors.NewServerTimeout(leases, "create", 1):        false,
		apierrors.NewInternalError(context.DeadlineExceeded):   false,
		fmt.Errorf("wrapped: %w", apierrors.NewBadRequest("")): true,
		context.DeadlineExceeded:                               false,
	} {
		require.Equal(t, want, isRefusal(err), "%v", err)
	}
}
