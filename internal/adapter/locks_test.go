package adapter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/lockmgr"
)

// Before each change the locks are kept, which looks at each of them: not more often than
// they may need it.
func TestLocksThatWereJustKeptAreNotLookedAt(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	client := fake.NewSimpleClientset()
	writes := 0
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) { writes++; return false, nil, nil })
	l := newLocks(lockmgr.New(client.CoordinationV1(), lockmgr.Options{Namespace: "janus-system", Clock: clock}), latecomers{clock: clock, lateness: time.Hour})
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
	clock.SetTime(clock.Now().Add(engine.LockTimeout(txn)/12 - time.Millisecond))
	assert.True(t, l.justKept(holder))
	clock.SetTime(clock.Now().Add(time.Millisecond))
	assert.False(t, l.justKept(holder))

	// However it goes on, a lock is renewed before half of its time is over.
	for range 200 {
		keep()
		lease, err := client.CoordinationV1().Leases("shop").Get(t.Context(), names[0][len("shop/"):], metav1.GetOptions{})
		require.NoError(t, err)
		assert.Less(t, clock.Since(lease.Spec.RenewTime.Time), engine.LockTimeout(txn)/2)
		clock.SetTime(clock.Now().Add(700 * time.Millisecond))
	}
	assert.InDelta(t, 200*0.7/22, writes, 2, "every third of its time, or a little later")

	for name, end := range map[string]func(){
		"somebody else may have done something with them": func() { l.Distrust(txn) },
		"another process keeps them from now on":          func() { l.Forget(txn) },
		"the clock was turned back":                       func() { clock.SetTime(time.Unix(0, 0)) },
	} {
		l.setKept(holder, clock.Now())
		end()
		assert.False(t, l.justKept(holder), name)
	}
}
