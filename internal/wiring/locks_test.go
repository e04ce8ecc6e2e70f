package wiring

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/lockmgr"
)

// Before each change the locks are kept, which looks at each of them: not more often than
// they may need it.
func TestLocksThatWereJustKeptAreNotLookedAt(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	client := fake.NewSimpleClientset()
	writes := 0
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) { writes++; return false, nil, nil })
	l := newLocks(lockmgr.New(client.CoordinationV1(), lockmgr.Options{Namespace: "janus-system", Clock: clock}), staleness{clock: clock, lateness: time.Hour})
	txn := &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deploy", UID: "u"}}
	txn.Spec.LockTimeout = ptr.To(api.Duration("60s"))
	txn.Status.Items = []api.Item{{Name: "a", State: api.ItemPrepared, Resource: "configmaps", Target: api.Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a"}}}
	names, err := l.Acquire(t.Context(), txn, func() {})
	require.NoError(t, err)
	txn.Status.Items[0].LockLease = names[0]
	holder := holderOf(txn)
	keep := func() {
		t.Helper()
		require.NoError(t, l.Keep(t.Context(), txn, func() {}))
	}

	assert.False(t, l.justKept(holder), "they were taken, and may be older than that")
	keep()
	assert.True(t, l.justKept(holder))
	clock.SetTime(clock.Now().Add(plan.LockTimeout(txn)/12 - time.Millisecond))
	assert.True(t, l.justKept(holder))
	clock.SetTime(clock.Now().Add(time.Millisecond))
	assert.False(t, l.justKept(holder))

	// However it goes on, a lock is renewed before half of its time is over.
	for range 200 {
		keep()
		lease, err := client.CoordinationV1().Leases("shop").Get(t.Context(), names[0][len("shop/"):], metav1.GetOptions{})
		require.NoError(t, err)
		assert.Less(t, clock.Since(lease.Spec.RenewTime.Time), plan.LockTimeout(txn)/2)
		clock.SetTime(clock.Now().Add(700 * time.Millisecond))
	}
	assert.InDelta(t, 200*0.7/22, writes, 2, "every third of its time, or a little later")

	for name, end := range map[string]func(){
		"another client may have done something with them": func() { l.Distrust(txn) },
		"another process keeps them from now on":           func() { l.Forget(txn) },
		"the clock was turned back":                        func() { clock.SetTime(time.Unix(0, 0)) },
	} {
		l.setKept(holder, clock.Now())
		end()
		assert.False(t, l.justKept(holder), name)
	}
}

// janusd may be without rights in the namespace of a target, as where it is bound to some
// namespaces. The lock is refused, and so is the read of it: that must not
// keep the Transaction from ending. A lock that is on record is not given up.
func TestALockThatWasNeverTakenNeedNotBeSeenToBeReleased(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	client := fake.NewSimpleClientset()
	client.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetNamespace() != "elsewhere" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), "", errors.New("no right"))
	})
	l := newLocks(lockmgr.New(client.CoordinationV1(), lockmgr.Options{Namespace: "janus-system", Clock: clock}), staleness{clock: clock, lateness: time.Hour})
	txn := &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deploy", UID: "u"}}
	for _, namespace := range []string{"elsewhere", "shop"} {
		txn.Status.Items = append(txn.Status.Items, api.Item{
			Name: namespace, State: api.ItemPrepared, Resource: "configmaps",
			Target: api.Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "a"},
		})
	}
	_, err := l.Acquire(t.Context(), txn, func() {})
	require.True(t, errclass.Is(err, errclass.AccessDenied), "%v", err)
	leases := func() int {
		list, err := client.CoordinationV1().Leases("shop").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		return len(list.Items)
	}

	// Neither the process that tried nor the next one knows of it.
	require.NoError(t, l.Release(t.Context(), txn, engine.SearchNot))
	require.NoError(t, l.Release(t.Context(), txn, engine.SearchNot))
	assert.Zero(t, leases())

	txn.Status.Items[0].LockLease = "elsewhere/janus-lock-of-it"
	err = l.Release(t.Context(), txn, engine.SearchNot)
	require.True(t, errclass.Is(err, errclass.AccessDenied), "%v", err)
	require.ErrorContains(t, err, "this process may not look at Lease elsewhere/")

	// Any other error is one, also beside those.
	txn.Status.Items[0].LockLease = ""
	client.PrependReactor("get", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetNamespace() == "shop", nil, errors.New("no answer")
	})
	require.ErrorContains(t, l.Release(t.Context(), txn, engine.SearchNot), "no answer")
}

// A process that has died may have taken the lock of an item that another has skipped since.
func TestTheLockOfASkippedItemIsReleasedWhereItMayBeThere(t *testing.T) {
	client := fake.NewSimpleClientset()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	journal := NewJournal(dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()))
	process := func() *Locks {
		return newLocks(lockmgr.New(client.CoordinationV1(), lockmgr.Options{Namespace: "janus-system", Clock: clock}), staleness{journal: journal, clock: clock, lateness: time.Hour})
	}
	txn := &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deploy", UID: "u"}}
	txn.Status.Items = []api.Item{{Name: "a", State: api.ItemPending, Resource: "configmaps", Target: api.Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a"}}}
	_, err := process().Acquire(t.Context(), txn, func() {})
	require.NoError(t, err)
	txn.Status.Items[0].State = api.ItemSkipped
	leases := func() int {
		list, err := client.CoordinationV1().Leases("shop").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		return len(list.Items)
	}
	require.NoError(t, process().Release(t.Context(), txn, engine.SearchNot))
	assert.Equal(t, 1, leases(), "this process knows that there is none")
	require.NoError(t, process().Release(t.Context(), txn, engine.SearchOnce))
	assert.Zero(t, leases())
}
