package ui

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/leasetable"
)

// blocked is a Transaction that waits for the locks of two objects, of which it does not know the Leases.
func blocked() *api.Transaction {
	t := transaction("blocked", api.PhasePreparing)
	reconciling(t, "LockHeld", "Lease shop/janus-lock-config is held by alice")
	for _, name := range []string{"config", "free"} {
		t.Status.Items = append(t.Status.Items, api.Item{
			Name: name, Target: api.Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name}, Resource: "configmaps", State: api.ItemPending,
		})
	}
	return t
}

func locksOf(t *testing.T, leases ...coordinationv1.Lease) []Lock {
	t.Helper()
	h, err := Handler(&given{transactions: []*api.Transaction{blocked()}, leases: leases}, Options{
		LeaseOf: func(target api.Target, resource string) string {
			assert.Equal(t, "configmaps", resource)
			return target.Namespace + "/janus-lock-" + target.Name
		},
	})
	require.NoError(t, err)
	var d Detail
	require.NoError(t, json.Unmarshal(get(h, "GET", "/api/transactions/shop/blocked").Body.Bytes(), &d))
	assert.Empty(t, d.Unread)
	return d.Locks
}

func lease(name string, spec coordinationv1.LeaseSpec) coordinationv1.Lease {
	return coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: spec}
}

// A lock that a person holds is named by no Transaction: it is found by its name.
func TestALockThatIsHeldByHandIsShownWithItsHolder(t *testing.T) {
	since := metav1.NewMicroTime(noon.Add(time.Minute))
	assert.Equal(t, []Lock{{
		Lease: "shop/janus-lock-config", Items: []string{"config"}, Holder: "alice", Held: "2026-03-01T12:01:00Z", Renewed: "2026-03-01T12:01:00Z", Lasts: 600, Waiting: []string{},
	}}, locksOf(t, lease("janus-lock-config", coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("alice"), AcquireTime: &since, RenewTime: &since, LeaseDurationSeconds: ptr.To[int32](600),
	})), "that of the other object is held by nobody, and nothing is waited for")
	assert.Empty(t, locksOf(t))
}

// A table of locks that cannot be read is one row, and what is beside it is shown.
func TestATableOfLocksThatCannotBeReadIsOneRow(t *testing.T) {
	broken := lease(leasetable.Name, coordinationv1.LeaseSpec{})
	broken.Annotations = map[string]string{leasetable.Annotation: "{"}
	found := locksOf(t, broken)
	require.Len(t, found, 1)
	assert.Equal(t, "shop/"+leasetable.Name, found[0].Lease)
	assert.Equal(t, []string{"config", "free"}, found[0].Items)
	assert.Contains(t, found[0].Broken, "a table of locks: annotation "+leasetable.Annotation)

	found = locksOf(t, broken, lease("janus-lock-config", coordinationv1.LeaseSpec{HolderIdentity: ptr.To("alice")}))
	require.Len(t, found, 2)
	assert.Equal(t, "alice", found[0].Holder)
	assert.Equal(t, []string{"free"}, found[1].Items)
}
